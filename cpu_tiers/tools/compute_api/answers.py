"""Requests to the APIs of other services than Placement, and checks of their answers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException, NotFound
from requests import JSONDecodeError
from requests.exceptions import ContentDecodingError

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.model.document import claims_json
from cpu_tiers.tools.http.retries import may_pass, retry_after_of, retrying
from cpu_tiers.tools.http.services import Services, tls_fault


class ComputeApiUnavailable(CpuTiersError):
    """An API does not answer, refuses, or its answer has another form."""


class NotFoundThere(ComputeApiUnavailable):
    """The service answers 404: it has no such object, or no such path."""


class Api(NamedTuple):
    """The API of a service, for messages.

    :param name: the name of the API.
    :param service_type: the type of the service in the catalog of Keystone.
    """

    name: str
    service_type: str


NOVA = Api("Nova's API", "compute")
NEUTRON = Api("Neutron", "network")
GLANCE = Api("Glance", "image")


class Wanted(NamedTuple):
    """What a request is for, for messages.

    :param things: for example ``flavors``.
    :param form: the form of a right answer, for example ``a list of flavors``.
    """

    service: Api
    things: str
    form: str


def get(
    services: Services, path: str, wanted: Wanted, microversion: str | None = None
) -> Mapping[str, Any]:
    """Return the JSON object with which a service answers a GET.

    :raises NotFoundThere: the service has no such object.
    :raises ComputeApiUnavailable: the service does not answer, or the answer is no JSON object.
    """
    repeat = retrying(services.retry_policy, may_pass, retry_after_of)
    adapter = services.adapter(wanted.service.service_type)
    try:
        body = repeat(_json, adapter, path, microversion)
    except NotFound as error:
        raise NotFoundThere(_unanswered(services, path, wanted, error)) from error
    except (ClientException, OSError, RecursionError) as error:
        # An OSError is an error of requests, or says that there is no file of certificates.
        raise ComputeApiUnavailable(_unanswered(services, path, wanted, error)) from error
    if not isinstance(body, dict):
        raise _other_form(path, wanted)
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


def part(body: object, key: str, kind: type[Any], path: str, wanted: Wanted) -> Any:
    """Return ``body[key]``, checked to be of a type.

    :raises ComputeApiUnavailable: the key is missing, or its value has another type.
    """
    if isinstance(body, Mapping) and isinstance(body.get(key), kind):
        return body[key]
    raise _other_form(path, wanted)


def _unanswered(services: Services, path: str, wanted: Wanted, error: Exception) -> str:
    reason = tls_fault(error, services.settings) or (
        f"{printable(str(error)[:300]) or type(error).__name__}; check"
        f" {services.settings.credentials}, and the endpoint of the service"
        f" {wanted.service.service_type}"
    )
    return f"GET {path}: {wanted.service.name} cannot be asked for {wanted.things}: {reason}"


def _other_form(path: str, wanted: Wanted) -> ComputeApiUnavailable:
    return ComputeApiUnavailable(
        f"GET {path}: the answer is not {wanted.form}; check the endpoint of the service"
        f" {wanted.service.service_type} in the catalog of Keystone"
    )
