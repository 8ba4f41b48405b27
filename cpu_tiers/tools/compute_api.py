"""Servers, images, ports, flavors, host aggregates and agents of a cloud, over HTTP.

A function raises :class:`ComputeApiUnavailable` if a service refuses, for example because the user
is no administrator, or answers no objects of the kind.

Source: API references of Nova, Glance and Neutron; Compute API guide, "Pagination": the key
``<objects>_links``, in Glance ``next``, announces a further page, which begins after the object of
the parameter ``marker``.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.tools.http.bounds import bound_fault
from cpu_tiers.tools.http.retries import is_json_type, may_pass, retry_after_of, retrying
from cpu_tiers.tools.http.services import Services, tls_fault

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

Document = Mapping[str, Any]


class ComputeApiUnavailable(CpuTiersError):
    """An API does not answer, refuses, or its answer has another form."""


class NotFoundThere(ComputeApiUnavailable):
    """The service answers 404: the object or the path does not exist."""


class TooOldThere(ComputeApiUnavailable):
    """The service answers 406: it is older than the microversion."""


_ERRORS: Mapping[object, type[ComputeApiUnavailable]] = {404: NotFoundThere, 406: TooOldThere}
"""By the status of an answer."""


class ObjectKind(NamedTuple):
    """A kind of objects of an API.

    :param service: the name of the service for messages.
    :param service_type: the type of the service in the catalog of Keystone.
    :param noun: the word for an object with its article, such as ``a server``.
    :param path, list_path: the path before the id of an object, and the path of the list.
    :param is_wrapped: whether an answer with one object has the object under the kind's name.
    :param marker: the key of an object by which the next page begins.
    """

    service: str
    service_type: str
    noun: str
    path: str
    list_path: str
    microversion: str | None = None
    is_wrapped: bool = True
    marker: str = "id"

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


_NOVA, _GLANCE, _NEUTRON = ("Nova's API", "compute"), ("Glance", "image"), ("Neutron", "network")

# 2.47 is the first microversion whose servers have their flavor with its extra specs, 2.61 the
# first whose flavors have their extra specs, and 2.41 the first whose aggregates have the uuids
# that they have in Placement.
SERVER = ObjectKind(*_NOVA, "a server", "/servers", "/servers/detail", "2.47")
SERVER_MICROVERSIONS = ("2.100", "2.98", "2.96", "2.73")
"""The microversions that add hints, image properties, the zone that a server asked for, and why
it is locked. Each release of Nova from 31 on has all; later ones add nothing to a server."""
IMAGE = ObjectKind(*_GLANCE, "an image", "/v2/images", "/v2/images", is_wrapped=False)
PORT = ObjectKind(*_NEUTRON, "a port", "/v2.0/ports", "/v2.0/ports")
_PLACED_SERVER = SERVER._replace(microversion=None)
# 2.59 is the first microversion whose migrations have uuids, which are consumers in Placement.
_MIGRATION = ObjectKind(
    *(*_NOVA, "a migration", "/os-migrations", "/os-migrations", "2.59"), marker="uuid"
)
_FLAVOR = ObjectKind(*_NOVA, "a flavor", "/flavors", "/flavors/detail", "2.61")
_AGGREGATE = ObjectKind(*_NOVA, "an aggregate", "/os-aggregates", "/os-aggregates", "2.41")
# 2.64 is the first microversion whose groups have a policy with rules.
_GROUP = ObjectKind(*_NOVA, "a server group", "/os-server-groups", "/os-server-groups", "2.64")
_AGENT = ObjectKind(*_NEUTRON, "an agent", "/v2.0/agents", "/v2.0/agents")

PAGE = 1000  # the default of [api] max_limit, so that Nova does not shorten the pages


def get(services: Services, kind: ObjectKind, path: str) -> Document:
    """Return the JSON object with which a service answers a GET.

    :raises NotFoundThere: the service has no such object.
    """
    from keystoneauth1.exceptions import ClientException

    repeat = retrying(services.retry_policy, may_pass, retry_after_of)
    try:
        body = repeat(_json, services.adapter(kind.service_type), path, kind.microversion)
    except (ClientException, OSError, RecursionError) as error:
        # An OSError is an error of requests, or says that there is no file of certificates.
        status = getattr(error, "http_status", None)
        kind_of_error = _ERRORS.get(status, ComputeApiUnavailable)
        reason = (
            bound_fault(error)
            or tls_fault(error, services.settings)
            or (
                f"{printable(str(error)[:300]) or type(error).__name__}; check"
                f" {services.settings.credentials}, and the endpoint of the service"
                f" {kind.service_type}"
            )
        )
        things = kind.plural if _is_list(kind, path) else kind.noun
        raise kind_of_error(
            f"GET {path}: {kind.service} cannot be asked for {things}: {reason}"
        ) from error
    if not isinstance(body, dict):
        raise _other_form(kind, path)
    return body


def endpoint_of(services: Services, kind: ObjectKind) -> str:
    """Return the URL of the service of a kind."""
    from keystoneauth1.exceptions import ClientException

    try:
        return services.adapter(kind.service_type).get_endpoint() or ""
    except (ClientException, OSError) as error:
        raise ComputeApiUnavailable(
            f"{kind.service} has no endpoint: {error}; check {services.settings.credentials}"
        ) from error


def _json(adapter: "Adapter", path: str, microversion: str | None) -> Any:
    """Return the decoded JSON of an answer.

    :raises ContentDecodingError: the body is cut off, so that a repeated request may succeed.
    """
    from requests.exceptions import ContentDecodingError, JSONDecodeError

    answer = adapter.get(path, microversion=microversion)
    try:
        return answer.json()
    except JSONDecodeError as error:
        if is_json_type(answer.headers.get("Content-Type", "")):
            raise ContentDecodingError(str(error)) from error
        raise


def part(body: object, key: str, type_: type[Any], kind: ObjectKind, path: str) -> Any:
    """Return ``body[key]``, checked to be of a type."""
    if isinstance(body, Mapping) and isinstance(body.get(key), type_):
        return body[key]
    raise _other_form(kind, path)


def _other_form(kind: ObjectKind, path: str) -> ComputeApiUnavailable:
    form = f"a list of {kind.plural}" if _is_list(kind, path) else kind.noun
    return ComputeApiUnavailable(
        f"GET {path}: the answer is not {form}; check the endpoint of the service"
        f" {kind.service_type} in the catalog of Keystone"
    )


def _is_list(kind: ObjectKind, path: str) -> bool:
    return path.partition("?")[0] == kind.list_path


def _read_object(services: Services, kind: ObjectKind, object_id: str) -> Document:
    path = kind.path_of(object_id)
    answer = get(services, kind, path)
    document: Document = part(answer, kind.name, dict, kind, path) if kind.is_wrapped else answer
    part(document, "id", str, kind, path)
    return document


def read_list(
    services: Services, kind: ObjectKind, parameters: Mapping[str, object]
) -> Iterator[Document]:
    """Yield the objects of a list, each with an id, page by page.

    The address in the link to the next page is not followed, because it may be of another host.
    """
    marker = None
    while True:
        query = {**parameters, **({"marker": marker} if marker else {})}
        # JSON can have half of a surrogate pair, which no request can.
        path = f"{kind.list_path}?{urlencode(query, errors='replace')}"
        body = get(services, kind, path)
        last = None
        for each in part(body, kind.plural, list, kind, path):
            last = part(each, kind.marker, str, kind, path)
            yield each
        has_more = f"{kind.plural}_links" in body or "next" in body
        if not has_more or last in (None, marker):
            return
        marker = last


def find(services: Services, kind: ObjectKind, name: str, where: str) -> Document:
    """Return the object with an id, or else the only object with a name.

    :param kind: ``SERVER``, ``IMAGE`` or ``PORT``.
    :param where: the argument that has the name, for an error.
    :raises InvalidInput: there is no such object, or several have the name.
    """
    # The path /servers/.. is the path of another object, and /servers/detail that of the list.
    if name.strip(".") and f"{kind.path}/{name}" != kind.list_path:
        with suppress(NotFoundThere):
            return _read_object(services, kind, name)
    filters, option = {"name": name}, ""
    if kind is SERVER:
        # Nova compares the name with a regular expression; all_tenants needs an administrator.
        filters = {"all_tenants": "1", "name": f"^{re.escape(name)}$"}
        option = " --all-projects"
    named = [each for each in read_list(services, kind, filters) if each.get("name") == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidInput.of(
            where,
            f"{name}: {kind.service} has {len(named)} {kind.plural} with this name",
            f"give one of the ids: {', '.join(each['id'] for each in named)}",
        )
    raise InvalidInput.of(
        where,
        f"{name}: {kind.service} has no {kind.name} with this name or id",
        f"openstack {kind.name} list{option} shows the {kind.plural}",
    )


class ReadServer(NamedTuple):
    """A server with what decides about its request, as the services return it.

    :param flavor: the flavor that is embedded in the server: ``original_name``, ``vcpus``,
        ``ram``, ``disk``, ``ephemeral``, ``swap`` and ``extra_specs``.
    :param image: ``None`` for a server that was created from a volume.
    """

    name: str
    flavor: Document
    image: Document | None
    ports: tuple[Document, ...]


def read_server(services: Services, server: str, where: str) -> ReadServer:
    """Return a server by its id or its name, with two to four requests; see :func:`find`."""
    document, path = find(services, SERVER, server, where), f"{SERVER.path}/{server}"
    image = document.get("image")
    image_id = part(image, "id", str, SERVER, path) if image else None
    return ReadServer(
        name=part(document, "name", str, SERVER, path),
        flavor=part(document, "flavor", dict, SERVER, path),
        image=_read_object(services, IMAGE, image_id) if image_id else None,
        ports=tuple(read_list(services, PORT, {"device_id": document["id"]})),
    )


def read_all_servers(services: Services) -> Iterator[Document]:
    """Yield all servers of the cloud, with the newest microversion that Nova has."""
    parameters = {"all_tenants": "1", "limit": PAGE}
    for microversion in SERVER_MICROVERSIONS:
        with suppress(TooOldThere):  # of the first page
            yield from read_list(services, SERVER._replace(microversion=microversion), parameters)
            return
    yield from read_list(services, SERVER, parameters)


def read_placed_servers(services: Services) -> Iterator[Document]:
    """Yield all servers with name, project, host, status and task, without the rest.

    A nova-api takes 1.6 s of CPU for 1,000 servers, and 2.9 s for all that it knows of them.
    """
    return read_list(services, _PLACED_SERVER, {"all_tenants": "1", "limit": PAGE})


IN_PROGRESS = (
    *("accepted", "queued", "preparing", "running", "pre-migrating", "migrating"),
    *("post-migrating", "finished", "confirming", "reverting", "done"),
)
"""The statuses of migrations that are not over, or not confirmed; and ``done``, by which an
evacuation waits for its source."""


def read_migrations(services: Services) -> Iterator[Document]:
    """Yield the migrations of :data:`IN_PROGRESS`, with a request for each status.

    Nova keeps all migrations that ever were, and takes one status in a request.
    """
    for status in IN_PROGRESS:
        yield from read_list(services, _MIGRATION, {"status": status, "limit": PAGE})


def read_images(services: Services) -> Iterator[Document]:
    """Yield all images of Glance, with the hidden images and the community images."""
    for is_hidden in ("false", "true"):
        parameters = {"visibility": "all", "os_hidden": is_hidden, "limit": PAGE}
        yield from read_list(services, IMAGE, parameters)


def read_server_groups(services: Services) -> Iterator[Document]:
    """Yield all server groups of the cloud, with ``policy``, ``rules`` and ``members``."""
    read: dict[str, None] = {}
    while True:
        query = urlencode({"all_projects": "true", "limit": PAGE, "offset": len(read)})
        path, before = f"{_GROUP.list_path}?{query}", len(read)
        groups = part(get(services, _GROUP, path), "server_groups", list, _GROUP, path)
        for group in groups:
            uuid = part(group, "id", str, _GROUP, path)
            if uuid not in read:
                read[uuid] = None
                yield group
        if len(groups) < PAGE or len(read) == before:
            return


def read_flavors(services: Services) -> Iterator[Document]:
    """Yield every flavor with its ``extra_specs``, public or not, page by page.

    Nova lists flavors that are not public only for an administrator. Where a policy keeps
    ``extra_specs`` out of the list, each flavor costs a request.
    """
    parameters = {"is_public": "None", "limit": PAGE, "sort_key": "flavorid"}
    for flavor in read_list(services, _FLAVOR, parameters):
        path, answer = _FLAVOR.list_path, flavor
        if "extra_specs" not in flavor:
            path = f"{_FLAVOR.path_of(flavor['id'])}/os-extra_specs"
            answer = get(services, _FLAVOR, path)
        yield {**flavor, "extra_specs": part(answer, "extra_specs", dict, _FLAVOR, path)}


class HostAggregate(NamedTuple):
    """A host aggregate.

    :param zone: the availability zone that the aggregate makes of its hosts; ``None`` for none.
    :param hosts: the names of the nova-compute services.
    """

    uuid: str
    name: str
    zone: str | None
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = MappingProxyType({})


def read_aggregates(services: Services) -> list[HostAggregate]:
    """Return all host aggregates, with one request."""
    path = _AGGREGATE.list_path
    answer = get(services, _AGGREGATE, path)
    aggregates = []
    for each in part(answer, _AGGREGATE.plural, list, _AGGREGATE, path):
        uuid, name = (part(each, key, str, _AGGREGATE, path) for key in ("uuid", "name"))
        zone = each.get("availability_zone")
        zone = zone if isinstance(zone, str) else None
        hosts = part(each, "hosts", list, _AGGREGATE, path) if "hosts" in each else ()
        metadata = part(each, "metadata", dict, _AGGREGATE, path) if "metadata" in each else {}
        texts = {key: str(value) for key, value in metadata.items()}
        aggregates.append(HostAggregate(uuid, name, zone, tuple(map(str, hosts)), texts))
    return aggregates


def read_agents(services: Services, host: str) -> tuple[Document, ...]:
    """Return the agents of a host. Neutron shows agents only to administrators."""
    return tuple(read_list(services, _AGENT, {"host": host}))
