"""Flavors, images, ports, servers and agents of the cloud, by their names or ids.

A text that is the path of a file is read as the output of the openstack client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import advice
from cpu_tiers.model.network_agent import NetworkAgent, reports_resources
from cpu_tiers.model.port import Port
from cpu_tiers.tools.compute_api.objects import (
    IMAGE,
    PORT,
    SERVER,
    find,
    read_agents,
    read_aggregates,
    read_flavors,
    read_server,
)
from cpu_tiers.tools.frame.documents import image_of, port_of, read_image, read_port
from cpu_tiers.tools.frame.flavor_documents import flavor_of
from cpu_tiers.tools.http.services import Services
from cpu_tiers.translators import ServerRequest

NOVA = "Nova"
"""The source of a flavor of the cloud, in an error."""

Open = Callable[[], Services]
"""Returns the services of the cloud. It is called only if a name has to be asked for."""


def is_file(text: str) -> bool:
    """Tell whether an argument is the path of a file, and not a name or an id.

    So is standard input, a text that ends with ``.json``, an absolute path, a path that begins
    with ``./`` or ``../``, and each file that exists.
    """
    if text == "-" or text.endswith(".json") or text.startswith(("/", "./", "../")):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path
        return False


def read_or_find_image(text: str, services: Open) -> Image:
    """Return the image in a file, or the image of Glance with a name or an id.

    :raises InvalidInput: there is no such file, or no such image; with every fault of an image.
    :raises ComputeApiUnavailable: Glance does not answer.
    """
    if is_file(text):
        return read_image(text)
    return _image(find(services(), IMAGE, text, "--image"), f"image {text}")


def read_or_find_ports(texts: Iterable[str], services: Open) -> tuple[Port, ...]:
    """Return the ports in files, or the ports of Neutron with names or ids.

    :raises InvalidInput: with the faults of all ports.
    :raises ComputeApiUnavailable: Neutron does not answer.
    """
    faults = FaultList()
    ports = []
    for text in texts:
        with faults:
            if is_file(text):
                ports.append(read_port(text))
            else:
                ports.append(_port(find(services(), PORT, text, "--port"), f"port {text}"))
    faults.raise_if_any()
    return tuple(ports)


def find_flavors(services: Services, names: Sequence[str]) -> list[Flavor]:
    """Return the flavors of the cloud with these names or ids; Nova is asked once.

    :raises InvalidInput: with all flavors that Nova does not have, and with the faults of flavors.
    :raises ComputeApiUnavailable: Nova does not answer.
    """
    flavors = list(read_flavors(services))
    by_key = {str(each["id"]): each for each in flavors}
    by_key |= {str(each.get("name")): each for each in flavors}  # the name goes first
    faults = FaultList()
    found = []
    for name in names:
        if name in by_key:
            with faults:
                found.append(flavor_of(by_key[name], NOVA))
            continue
        known = [str(each.get("name")) for each in flavors]
        hint = advice(name, known, "openstack flavor list --all shows the flavors")
        faults.add("--flavor", f"{name}: Nova has no such flavor", hint)
    faults.raise_if_any()
    return found


def find_server(services: Services, name: str, server: ServerRequest) -> ServerRequest:
    """Return the request that nova-scheduler would make now for a server that exists.

    :param name: the name or the id of the server.
    :param server: the request that the other arguments describe. An image or ports of the
        arguments replace those of the server.
    :raises InvalidInput: Nova has no such server, or several.
    :raises ComputeApiUnavailable: Nova, Glance or Neutron does not answer.
    """
    found = read_server(services, name, "--server")
    where = f"server {found.name}"
    flavor: Mapping[str, Any] = found.flavor
    if found.image is None:  # the root disk is a volume
        flavor = {**flavor, "disk": 0}
    return server._replace(
        flavor=flavor_of(flavor, where),
        image=server.image or (None if found.image is None else _image(found.image, where)),
        ports=server.ports or tuple(_port(port, where) for port in found.ports),
    )


def server_ids(texts: Iterable[str], services: Open) -> list[str]:
    """Return the ids of servers with names or ids. A uuid is an id, for which nobody is asked.

    :raises InvalidInput: with all names that no server has, or several servers have.
    :raises ComputeApiUnavailable: Nova does not answer.
    """
    faults = FaultList()
    ids = []
    for text in texts:
        if _is_uuid(text):
            ids.append(text)
            continue
        with faults:
            ids.append(find(services(), SERVER, text, "--server")["id"])
    faults.raise_if_any()
    return ids


def aggregate_uuids(
    arguments: Iterable[Iterable[str]], services: Open
) -> tuple[frozenset[str], ...]:
    """Return the uuids of aggregates with names or uuids. Nobody is asked for a uuid.

    :raises InvalidInput: with all names that no aggregate has.
    :raises ComputeApiUnavailable: Nova does not answer.
    """
    wanted = tuple(map(frozenset, arguments))
    names = sorted(name for name in frozenset().union(*wanted) if not _is_uuid(name))
    uuids = {each.name: each.uuid for each in read_aggregates(services())} if names else {}
    faults = FaultList()
    for name in names:
        if name not in uuids:
            otherwise = "openstack aggregate list shows the aggregates"
            hint = advice(name, uuids, otherwise)
            faults.add("--aggregate", f"{name}: Nova has no such aggregate", hint)
    faults.raise_if_any()
    return tuple(frozenset(uuids.get(text, text) for text in texts) for texts in wanted)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def find_agents(services: Services, host: str) -> tuple[NetworkAgent, ...]:
    """Return the agents of a host that report bandwidths or packet rates to Neutron.

    :raises InvalidInput: the host has no such agent, or its agent is a controller of OVN, which
        reports to OVN; with every fault of an agent.
    :raises ComputeApiUnavailable: Neutron does not answer.
    """
    agents = read_agents(services, host)
    reporting = [agent for agent in agents if reports_resources(agent)]
    if not reporting:
        raise InvalidInput.of(
            f"--host {host}",
            f"none of its {len(agents)} agents in Neutron reports bandwidths or packet rates",
            "openstack network agent list shows the agents; set resource_provider_bandwidths",
        )
    return tuple(
        NetworkAgent.parse(agent, where=f"{agent.get('agent_type')} of host {host}")
        for agent in reporting
    )


def _image(image: Mapping[str, Any], where: str) -> Image:
    """Return an image of Glance's API, whose properties stand beside its own fields."""
    texts = {key: value for key, value in image.items() if isinstance(value, str)}
    name = image.get("name") or image.get("id")
    return image_of({"name": name, "properties": texts}, where)


def _port(port: Mapping[str, Any], where: str) -> Port:
    return port_of({**port, "binding_profile": port.get("binding:profile")}, where)
