"""Requests to the APIs of Nova, Glance and Neutron, and checks of their answers.

Source: Compute API guide, "Pagination": the key ``<objects>_links`` announces a further page,
which begins after the object of the parameter ``marker``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException, NotFound
from requests import JSONDecodeError
from requests.exceptions import ContentDecodingError

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.model.document import claims_json
from cpu_tiers.tools.http.retries import may_pass, retry_after_of, retrying
from cpu_tiers.tools.http.services import Services, tls_fault

Document = Mapping[str, Any]


class ComputeApiUnavailable(CpuTiersError):
    """An API does not answer, refuses, or its answer has another form."""


class NotFoundThere(ComputeApiUnavailable):
    """The service answers 404: the object or the path does not exist."""


class Api(NamedTuple):
    """The API of a service.

    :param name: the name for messages.
    :param service_type: the type of the service in the catalog of Keystone.
    """

    name: str
    service_type: str


class ObjectKind(NamedTuple):
    """A kind of objects of an API.

    :param noun: the word for an object with its article, such as ``a server``.
    :param path: the path before the id of an object.
    :param list_path: the path of the list.
    :param is_wrapped: whether an answer with one object has the object under the kind's name.
    """

    api: Api
    noun: str
    path: str
    list_path: str
    microversion: str | None = None
    is_wrapped: bool = True

    @property
    def name(self) -> str:
        """Return the word for an object, such as ``server``."""
        return self.noun.partition(" ")[2]

    @property
    def plural(self) -> str:
        """Return the key of an answer with several objects."""
        return f"{self.name}s"

    def path_of(self, object_id: str) -> str:
        """Return the path of the object with an id."""
        return f"{self.path}/{quote(object_id, safe='', errors='replace')}"


def read_object(services: Services, kind: ObjectKind, object_id: str) -> Document:
    """Return the object with an id.

    :raises NotFoundThere: there is no such object.
    :raises ComputeApiUnavailable: the service does not answer with an object that has an id.
    """
    path = kind.path_of(object_id)
    answer = get(services, kind, path)
    document: Document = part(answer, kind.name, dict, kind, path) if kind.is_wrapped else answer
    part(document, "id", str, kind, path)
    return document


def read_list(
    services: Services, kind: ObjectKind, parameters: Mapping[str, object]
) -> Iterator[Document]:
    """Yield the objects of a list, page by page.

    The address in the link to the next page is not followed, because it may be of another host.

    :raises ComputeApiUnavailable: the service does not answer with a list of objects that have
        an id.
    """
    marker = None
    while True:
        query = {**parameters, **({"marker": marker} if marker else {})}
        # JSON can have half of a surrogate pair, which no request can.
        path = f"{kind.list_path}?{urlencode(query, errors='replace')}"
        body = get(services, kind, path)
        last = None
        for each in part(body, kind.plural, list, kind, path):
            last = part(each, "id", str, kind, path)
            yield each
        if f"{kind.plural}_links" not in body or last in (None, marker):
            return
        marker = last


def get(services: Services, kind: ObjectKind, path: str) -> Document:
    """Return the JSON object with which a service answers a GET.

    :raises NotFoundThere: the service has no such object.
    :raises ComputeApiUnavailable: the service does not answer, or the answer is no JSON object.
    """
    repeat = retrying(services.retry_policy, may_pass, retry_after_of)
    try:
        body = repeat(_json, services.adapter(kind.api.service_type), path, kind.microversion)
    except NotFound as error:
        raise NotFoundThere(_unanswered(services, kind, path, error)) from error
    except (ClientException, OSError, RecursionError) as error:
        # An OSError is an error of requests, or says that there is no file of certificates.
        raise ComputeApiUnavailable(_unanswered(services, kind, path, error)) from error
    if not isinstance(body, dict):
        raise _other_form(kind, path)
    return body


def _json(adapter: Adapter, path: str, microversion: str | None) -> Any:
    """Return the decoded JSON of an answer.

    :raises ContentDecodingError: the body is cut off. ``may_pass`` takes this error for an error
        after which a repeated request may succeed, and ``JSONDecodeError`` for one after which it
        cannot.
    """
    answer = adapter.get(path, microversion=microversion)
    try:
        return answer.json()
    except JSONDecodeError as error:
        if claims_json(answer.headers.get("Content-Type", "")):
            raise ContentDecodingError(str(error)) from error
        raise


def part(body: object, key: str, type_: type[Any], kind: ObjectKind, path: str) -> Any:
    """Return ``body[key]``, checked to be of a type.

    :param kind: the kind of objects of the answer, for an error.
    :param path: the path of the request, for an error.
    :raises ComputeApiUnavailable: the key is missing, or its value has another type.
    """
    if isinstance(body, Mapping) and isinstance(body.get(key), type_):
        return body[key]
    raise _other_form(kind, path)


def _unanswered(services: Services, kind: ObjectKind, path: str, error: Exception) -> str:
    reason = tls_fault(error, services.settings) or (
        f"{printable(str(error)[:300]) or type(error).__name__}; check"
        f" {services.settings.credentials}, and the endpoint of the service"
        f" {kind.api.service_type}"
    )
    things = kind.plural if _is_list(kind, path) else kind.noun
    return f"GET {path}: {kind.api.name} cannot be asked for {things}: {reason}"


def _other_form(kind: ObjectKind, path: str) -> ComputeApiUnavailable:
    form = f"a list of {kind.plural}" if _is_list(kind, path) else kind.noun
    return ComputeApiUnavailable(
        f"GET {path}: the answer is not {form}; check the endpoint of the service"
        f" {kind.api.service_type} in the catalog of Keystone"
    )


def _is_list(kind: ObjectKind, path: str) -> bool:
    return path.partition("?")[0] == kind.list_path
