"""Finds and reads servers, images, ports, flavors, host aggregates and agents of a cloud.

Source: API references of Nova, Glance and Neutron.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.compute_api.client import (
    Api,
    Document,
    NotFoundThere,
    ObjectKind,
    get,
    part,
    read_list,
    read_object,
)
from cpu_tiers.tools.http.services import Services

_NOVA = Api("Nova's API", "compute")
_GLANCE = Api("Glance", "image")
_NEUTRON = Api("Neutron", "network")

# 2.47 is the first microversion whose servers have their flavor with its extra specs, 2.61 the
# first whose flavors have their extra specs, and 2.41 the first whose aggregates have the uuids
# that they have in Placement.
SERVER = ObjectKind(_NOVA, "a server", "/servers", "/servers/detail", "2.47")
IMAGE = ObjectKind(_GLANCE, "an image", "/v2/images", "/v2/images", is_wrapped=False)
PORT = ObjectKind(_NEUTRON, "a port", "/v2.0/ports", "/v2.0/ports")
_SERVER_NAME = ObjectKind(_NOVA, "a server", "/servers", "/servers")
_FLAVOR = ObjectKind(_NOVA, "a flavor", "/flavors", "/flavors/detail", "2.61")
_AGGREGATE = ObjectKind(_NOVA, "an aggregate", "/os-aggregates", "/os-aggregates", "2.41")
_AGENT = ObjectKind(_NEUTRON, "an agent", "/v2.0/agents", "/v2.0/agents")

PAGE = 1000  # the default of [api] max_limit, so that Nova does not shorten the pages


def find(services: Services, kind: ObjectKind, name: str, where: str) -> Document:
    """Return the object with an id, or else the only object with a name.

    :param kind: ``SERVER``, ``IMAGE`` or ``PORT``.
    :param where: the argument that has the name, for an error.
    :raises InvalidInput: there is no such object, or several have the name.
    :raises ComputeApiUnavailable: the service does not answer.
    """
    # The path /servers/.. is the path of another object, and /servers/detail that of the list.
    if name.strip(".") and f"{kind.path}/{name}" != kind.list_path:
        try:
            return read_object(services, kind, name)
        except NotFoundThere:
            pass
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
            f"{name}: {kind.api.name} has {len(named)} {kind.plural} with this name",
            f"give one of the ids: {', '.join(each['id'] for each in named)}",
        )
    raise InvalidInput.of(
        where,
        f"{name}: {kind.api.name} has no {kind.name} with this name or id",
        f"openstack {kind.name} list{option} shows the {kind.plural}",
    )


class ReadServer(NamedTuple):
    """A server with what decides about its request.

    :param name: the name of the server.
    :param flavor: the flavor that is embedded in the server: ``original_name``, ``vcpus``,
        ``ram``, ``disk``, ``ephemeral``, ``swap`` and ``extra_specs``.
    :param image: the image as Glance returns it; ``None`` for a server that was created from a
        volume.
    :param ports: the ports as Neutron returns them.
    """

    name: str
    flavor: Document
    image: Document | None
    ports: tuple[Document, ...]


def read_server(services: Services, server: str, where: str) -> ReadServer:
    """Return a server by its id or its name. The search takes two to four requests.

    :param where: the argument that has the name, for an error.
    :raises InvalidInput: Nova has no such server, or several with this name.
    :raises ComputeApiUnavailable: a service does not answer, or Glance has no such image.
    """
    document, path = find(services, SERVER, server, where), f"{SERVER.path}/{server}"
    image = document.get("image")
    image_id = part(image, "id", str, SERVER, path) if image else None
    return ReadServer(
        name=part(document, "name", str, SERVER, path),
        flavor=part(document, "flavor", dict, SERVER, path),
        image=read_object(services, IMAGE, image_id) if image_id else None,
        ports=tuple(read_list(services, PORT, {"device_id": document["id"]})),
    )


def read_server_names(services: Services) -> dict[str, str]:
    """Return the names of all servers of the cloud by their ids, with a request for 1,000 servers.

    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    """
    servers = read_list(services, _SERVER_NAME, {"all_tenants": "1", "limit": PAGE})
    return {
        server["id"]: server["name"] for server in servers if isinstance(server.get("name"), str)
    }


def read_flavors(services: Services) -> Iterator[Document]:
    """Yield every flavor with its ``extra_specs``, public or not, page by page.

    Nova lists flavors that are not public only for an administrator. Where a policy keeps
    ``extra_specs`` out of the list, each flavor costs a request.

    :raises ComputeApiUnavailable: Nova does not answer with a list of flavors.
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
    """

    uuid: str
    name: str
    zone: str | None


def read_aggregates(services: Services) -> list[HostAggregate]:
    """Return all host aggregates, with one request.

    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    """
    path = _AGGREGATE.list_path
    answer = get(services, _AGGREGATE, path)
    aggregates = []
    for each in part(answer, _AGGREGATE.plural, list, _AGGREGATE, path):
        uuid, name = (part(each, key, str, _AGGREGATE, path) for key in ("uuid", "name"))
        zone = each.get("availability_zone")
        aggregates.append(HostAggregate(uuid, name, zone if isinstance(zone, str) else None))
    return aggregates


def read_agents(services: Services, host: str) -> tuple[Document, ...]:
    """Return the agents of a host. Neutron shows agents only to administrators.

    :raises ComputeApiUnavailable: Neutron does not answer.
    """
    return tuple(read_list(services, _AGENT, {"host": host}))
