"""Images, ports, flavors, servers and aggregates of the cloud, by names and ids or from files.

A text that is the path of a file is read as the output of the openstack client. A function that
asks for names raises :class:`~cpu_tiers.errors.InvalidInput` with all names that no object has, or
several objects have, and with the faults of the objects; and
:class:`~cpu_tiers.tools.compute_api.ComputeApiUnavailable` if a service does not answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from cpu_tiers.errors import FaultList, InvalidInput, read_each
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.model.similar_names import advice
from cpu_tiers.tools.compute_api import IMAGE, PORT, SERVER, find, read_server
from cpu_tiers.tools.frame.documents import flavor_of, image_of, port_of, read_image, read_port
from cpu_tiers.tools.frame.nova_servers import NovaSource
from cpu_tiers.tools.http.services import Services
from cpu_tiers.translators import ServerRequest

NOVA = "Nova"
"""The source of a flavor of the cloud, in an error."""

Open = Callable[[], Services]
"""Returns the services of the cloud. It is called only if a name has to be asked for."""


def is_file(text: str) -> bool:
    """Tell whether an argument is the path of a file, and not a name or an id."""
    if text == "-" or text.endswith(".json") or text.startswith(("/", "./", "../")):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path
        return False


def read_or_find_image(text: str, services: Open) -> Image:
    """Return the image in a file, or the image of Glance with a name or an id."""
    if is_file(text):
        return read_image(text)
    return _image(find(services(), IMAGE, text, "--image"), f"image {text}")


def read_or_find_ports(texts: Iterable[str], services: Open) -> tuple[Port, ...]:
    """Return the ports in files, or the ports of Neutron with names or ids."""

    def read(text: str) -> Port:
        if is_file(text):
            return read_port(text)
        return _port(find(services(), PORT, text, "--port"), f"port {text}")

    return read_each(read, texts)


def find_flavors(nova: NovaSource, names: Sequence[str]) -> list[Flavor]:
    """Return the flavors of the cloud with these names or ids; Nova is asked once."""
    flavors = list(nova.flavors())
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


def of_volume(image: Image | None) -> Image:
    """Return the image of a server from a volume, whose format does not matter."""
    return (image or Image("of the volume"))._replace(disk_format="")


def find_server(services: Services, name: str, server: ServerRequest) -> ServerRequest:
    """Return the request that nova-scheduler would make now for a server that exists.

    :param name: the name or the id of the server.
    :param server: the request that the other arguments describe. An image or ports of the
        arguments replace those of the server.
    """
    found = read_server(services, name, "--server")
    where = f"server {found.name}"
    image, flavor = server.image, found.flavor
    if found.image is None:  # the root disk is a volume
        flavor, image = {**flavor, "disk": 0}, of_volume(image)
    elif image is None:
        image = _image(found.image, where)
    ports = server.ports or tuple(_port(port, where) for port in found.ports)
    return server._replace(flavor=flavor_of(flavor, where), image=image, ports=ports)


def server_ids(texts: Iterable[str], services: Open) -> tuple[str, ...]:
    """Return the ids of servers with names or ids. A uuid is an id, for which nobody is asked."""

    def read(text: str) -> str:
        return text if _is_uuid(text) else str(find(services(), SERVER, text, "--server")["id"])

    return read_each(read, texts)


def aggregate_uuids(
    arguments: Iterable[Iterable[str]], nova: Callable[[], NovaSource]
) -> tuple[frozenset[str], ...]:
    """Return the uuids of aggregates with names or uuids. Nobody is asked for a uuid."""
    wanted = tuple(map(frozenset, arguments))
    names = sorted(name for name in frozenset().union(*wanted) if not _is_uuid(name))
    uuids = {each.name: each.uuid for each in nova().aggregates()} if names else {}
    faults = FaultList()
    for name in names:
        if name not in uuids:
            hint = advice(name, uuids, "openstack aggregate list shows the aggregates")
            faults.add("--aggregate", f"{name}: Nova has no such aggregate", hint)
    faults.raise_if_any()
    return tuple(frozenset(uuids.get(text, text) for text in texts) for texts in wanted)


def zone_aggregates(zone: str, nova: Callable[[], NovaSource]) -> frozenset[str]:
    """Return the uuids of the aggregates that make an availability zone."""
    aggregates = list(nova().aggregates())
    uuids = frozenset(each.uuid for each in aggregates if each.zone == zone)
    if not uuids:
        zones = sorted({each.zone for each in aggregates if each.zone})
        hint = advice(zone, zones, "openstack availability zone list --compute shows the zones")
        raise InvalidInput.of("--zone", f"{zone}: no aggregate makes this zone", hint)
    return uuids


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _image(image: Mapping[str, Any], where: str) -> Image:
    """Return an image of Glance's API, whose properties stand beside its own fields."""
    texts = {key: value for key, value in image.items() if isinstance(value, str)}
    name = image.get("name") or image.get("id")
    document = {"name": name, "properties": texts, "disk_format": image.get("disk_format")}
    return image_of(document, where)


def _port(port: Mapping[str, Any], where: str) -> Port:
    names = {"binding_profile": "binding:profile", "binding_vnic_type": "binding:vnic_type"}
    return port_of({**port, **{key: port.get(name) for key, name in names.items()}}, where)
