"""The servers of Nova as values: what Nova's API and Glance say of each, and what is not said.

Each function raises :class:`~cpu_tiers.tools.compute_api.ComputeApiUnavailable` if Nova does not
answer, or refuses. Where only a part is refused, that part is unknown, with a warning.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.service_states import ComputeService
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    AGGREGATES,
    HINTS,
    HOST,
    IMAGE,
    IMAGE_TRAITS,
    MIGRATIONS,
    UNREAD,
    ZONE,
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.compute_api import (
    ComputeApiUnavailable,
    read_aggregates,
    read_all_servers,
    read_flavors,
    read_images,
    read_migrations,
    read_placed_servers,
    read_server_groups,
)
from cpu_tiers.tools.compute_services import read_compute_services
from cpu_tiers.tools.frame.documents import flavor_of
from cpu_tiers.tools.http.services import Services

if TYPE_CHECKING:
    from cpu_tiers.tools.database.stored_servers import NovaDatabases

LOG = logging.getLogger(__name__)

_NODE, _HOST = "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-SRV-ATTR:host"
_KEYS = {HOST: _NODE, ZONE: "pinned_availability_zone", HINTS: "scheduler_hints", IMAGE: "image"}
_TRAIT = "trait:"
_STANDARD = re.compile(
    "(hw|img|os)_|trait:|(xenapi|vmware)_|(architecture|auto_disk_config|bdm_v2|bittorrent"
    "|cache_in_nova|hypervisor_type|hypervisor_version_requires|ipxe_boot|owner_id"
    "|root_device_name|traits_required|vm_mode)$"
)
"""The properties that mean something to Nova. The API of Nova 31 tells all that Nova keeps of an
image, later ones and nova-scheduler leave out the others."""

_Value = TypeVar("_Value")


Computes = Iterable[ComputeService]


class NovaApi:
    """The APIs of Nova and Glance."""

    def __init__(self, services: Services) -> None:
        self.servers = partial(read_all_servers, services)
        self.placed_servers = partial(read_placed_servers, services)
        self.server_groups = partial(read_server_groups, services)
        self.migrations = partial(read_migrations, services)
        self.aggregates = partial(read_aggregates, services)
        self.flavors = partial(read_flavors, services)
        self.compute_services = partial(read_compute_services, services)
        self.image_traits = partial(_image_traits, services)


NovaSource: TypeAlias = "NovaApi | NovaDatabases"
"""What tells the servers of a cloud in the form of Nova's API: the API, or the databases."""


def read_servers(nova: NovaSource, computes: Computes, faults: FaultList) -> SnapshotServers:
    """Return all that Nova says of its servers, and the traits of images.

    :param computes: the nova-compute services of all hosts.
    :param faults: collects the faults of flavors; their servers request what they have.
    """
    reader = _ServerReader(faults)
    servers = {body["id"]: reader.server(body) for body in nova.servers()}
    groups = {body["id"]: _group(body, servers) for body in nova.server_groups()}
    placed = _placed(nova, computes, servers)
    unread: set[str] = set()
    aggregates = _unless_refused(lambda: read_host_aggregates(nova, computes), AGGREGATES, unread)
    images = _unless_refused(nova.image_traits, IMAGE_TRAITS, unread)
    if images is not None:
        servers = {uuid: _with_traits(server, images) for uuid, server in servers.items()}
    return replace(
        placed,
        servers=servers,
        groups=groups,
        aggregates=aggregates or {},
        unread=_unread_of_all(servers.values()) | placed.unread | unread,
    )


def read_host_aggregates(nova: NovaSource, computes: Computes) -> dict[str, SnapshotAggregate]:
    """Return the host aggregates by uuid; their hosts have the names of the root providers."""
    nodes: dict[str, list[str]] = {}
    for compute in computes:
        nodes.setdefault(compute.host, []).extend(compute.nodes[-1:])
    return {
        each.uuid: SnapshotAggregate(
            name=each.name,
            zone=each.zone or "",
            hosts=tuple(node for host in each.hosts for node in nodes.get(host, [host])),
            metadata=each.metadata,
        )
        for each in nova.aggregates()
    }


def read_places(nova: NovaSource, computes: Computes) -> SnapshotServers:
    """Return where the servers are, their projects and their migrations, and nothing else."""
    reader = _ServerReader(None)
    servers = {body["id"]: reader.server(body) for body in nova.placed_servers()}
    placed = _placed(nova, computes, servers)
    further = frozenset(UNREAD) - {HOST, MIGRATIONS}
    return replace(placed, unread=_unread_of_all(servers.values()) | placed.unread | further)


def _placed(
    nova: NovaSource, computes: Computes, servers: Mapping[str, SnapshotServer]
) -> SnapshotServers:
    """Return servers with the migrations and the hosts of Nova."""
    unread: set[str] = set()
    bodies = _unless_refused(lambda: list(nova.migrations()), MIGRATIONS, unread) or []
    return SnapshotServers(
        servers=servers,
        migrations={body["uuid"]: _migration(body) for body in bodies},
        services={node: compute.host for compute in computes for node in compute.nodes},
        down=tuple(dict.fromkeys(n for each in computes if not each.is_up for n in each.nodes)),
        unread=frozenset(unread),
    )


def _unless_refused(read: Callable[[], _Value], name: str, unread: set[str]) -> _Value | None:
    """Return the answer of a service; if the service refuses, note the name as unread."""
    try:
        return read()
    except ComputeApiUnavailable as error:
        LOG.warning("%s: not known: %s", UNREAD[name], error)
        unread.add(name)
        return None


def _unread_of_all(servers: Iterable[SnapshotServer]) -> frozenset[str]:
    """Return what is known of no server."""
    sets = [server.unread for server in servers]
    return frozenset.intersection(*sets) if sets else frozenset()


class _ServerReader:
    """Reads servers, of which most have equal flavors; each flavor is kept once.

    :param faults: collects the faults of flavors; ``None`` to leave out the flavors.
    """

    def __init__(self, faults: FaultList | None) -> None:
        self._faults = faults
        self._flavors: dict[str, Flavor] = {}

    def server(self, body: Mapping[str, Any]) -> SnapshotServer:
        """Return a server; a cell that does not answer leaves nearly all keys out."""
        image, hints = body.get("image"), body.get("scheduler_hints")
        properties = image.get("properties") if isinstance(image, Mapping) else None
        unread = {name for name, key in _KEYS.items() if key not in body}
        if not isinstance(properties, Mapping):
            unread.add(IMAGE)
        return SnapshotServer(
            name=_text(body, "name") or body["id"],
            flavor=self._flavor(body),
            state=_text(body, "status"),
            task=_text(body, "OS-EXT-STS:task_state"),
            is_locked=body.get("locked") is True,
            lock_reason=_text(body, "locked_reason"),
            host=_text(body, _NODE) or _text(body, _HOST),
            project=_text(body, "tenant_id"),
            zone=_text(body, _KEYS[ZONE]),
            hints=_hints(hints) if isinstance(hints, Mapping) else {},
            image=_image(image, properties),
            is_from_volume=image == "",
            unread=frozenset(unread),
        )

    def _flavor(self, body: Mapping[str, Any]) -> Flavor | None:
        flavor = body.get("flavor")
        if self._faults is None or not isinstance(flavor, Mapping):
            return None
        key = repr(flavor)
        if key not in self._flavors:
            read = self._faults.read(flavor_of, flavor, f"server {body['id']}")
            if read is None:
                return None
            self._flavors[key] = read
        return self._flavors[key]


def _text(body: Mapping[str, Any], key: str) -> str:
    return str(body.get(key) or "")


def _hints(hints: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(map(str, values)) if isinstance(values, list) else (str(values),)
        for name, values in hints.items()
    }


def _image(image: object, properties: object) -> Image | None:
    if not isinstance(image, Mapping):
        return None
    texts = properties if isinstance(properties, Mapping) else {}
    standard = {key: str(value) for key, value in texts.items() if _is_standard(key)}
    return Image(str(image.get("id")), standard)


@cache
def _is_standard(name: str) -> bool:
    return bool(_STANDARD.match(name))


def _image_traits(services: Services) -> dict[str, dict[str, str]]:
    """Return the required traits of each image of Glance; Nova's answer does not have them."""
    return {
        image["id"]: {key: str(value) for key, value in image.items() if key.startswith(_TRAIT)}
        for image in read_images(services)
    }


def _with_traits(
    server: SnapshotServer, images: Mapping[str, Mapping[str, str]]
) -> SnapshotServer:
    """Return a server whose image has its traits; those of a deleted image are not known."""
    if server.image is None:
        return server
    if server.image.name not in images:
        return replace(server, unread=server.unread | {IMAGE_TRAITS})
    traits = images[server.image.name]
    properties = {**server.image.properties, **traits}
    return replace(server, image=Image(server.image.name, properties)) if traits else server


def _group(body: Mapping[str, Any], servers: Mapping[str, object]) -> ServerGroup:
    """Return a group; of its members, those that are among the servers."""
    rules = body.get("rules")
    most = rules.get("max_server_per_host") if isinstance(rules, Mapping) else None
    members = body.get("members")
    return ServerGroup(
        name=_text(body, "name") or body["id"],
        policy=_text(body, "policy"),
        most=most if type(most) is int and most > 0 else 1,
        members=tuple(sorted(servers.keys() & map(str, members)))
        if isinstance(members, list)
        else (),
    )


def _migration(body: Mapping[str, Any]) -> ServerMigration:
    return ServerMigration(
        server=_text(body, "instance_uuid"),
        kind=_text(body, "migration_type"),
        status=_text(body, "status"),
        source=_text(body, "source_node"),
        target=_text(body, "dest_node"),
    )
