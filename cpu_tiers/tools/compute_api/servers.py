"""Reads a server, its image and its ports, or the names of all servers.

Source: Neutron API reference, ``GET /v2.0/ports``; Nova API reference, ``GET /servers``; the
others in :mod:`~cpu_tiers.tools.compute_api.lookup`.
"""

from typing import NamedTuple
from urllib.parse import quote

from cpu_tiers.tools.compute_api.answers import NEUTRON, NOVA, Wanted, get, part
from cpu_tiers.tools.compute_api.lookup import IMAGE, SERVER, Document, find, read
from cpu_tiers.tools.compute_api.pages import PAGE, read_pages
from cpu_tiers.tools.http.services import Services

_PORTS = Wanted(NEUTRON, "ports", "a list of ports")
_SERVERS = Wanted(NOVA, "servers", "a list of servers")


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
    """Return a server by its id or its name. It takes two to four requests.

    :param where: the argument that has the name, for an error.
    :raises InvalidInput: Nova has no such server, or several with this name.
    :raises ComputeApiUnavailable: a service does not answer, or Glance has no such image.
    """
    found = find(services, SERVER, server, where)
    path = f"{SERVER.path}/{server}"
    image = found.get("image")
    return ReadServer(
        name=part(found, "name", str, path, SERVER.wanted),
        flavor=part(found, "flavor", dict, path, SERVER.wanted),
        image=(
            read(services, IMAGE, part(image, "id", str, path, SERVER.wanted)) if image else None
        ),
        ports=_ports(services, part(found, "id", str, path, SERVER.wanted)),
    )


def _ports(services: Services, server_id: str) -> tuple[Document, ...]:
    path = f"/v2.0/ports?device_id={quote(server_id, safe='')}"
    ports = part(get(services, path, _PORTS), "ports", list, path, _PORTS)
    return tuple(port for port in ports if isinstance(port, dict))


def read_server_names(services: Services) -> dict[str, str]:
    """Return the names of all servers of the cloud by their ids, with a request for 1,000 servers.

    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    """
    parameters: dict[str, str | int] = {"all_tenants": "1", "limit": PAGE}
    servers = read_pages(services, "/servers", parameters, _SERVERS)
    return {
        server["id"]: server["name"] for server in servers if isinstance(server.get("name"), str)
    }
