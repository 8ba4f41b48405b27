"""The cloud that a command asks, or a snapshot in its place: Placement, services and flavors."""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.similar_names import advice
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.service_states import ComputeService, ServiceStates
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import AGGREGATES
from cpu_tiers.tools.compute_api import ComputeApiUnavailable
from cpu_tiers.tools.frame.cloud_objects import NOVA, find_flavors
from cpu_tiers.tools.frame.documents import Check, flavor_of, no_check, read_json
from cpu_tiers.tools.frame.nova_servers import NovaApi, NovaSource, read_host_aggregates
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.candidates import states_of
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient

if TYPE_CHECKING:
    from cpu_tiers.tools.database.databases import Databases

LOG = logging.getLogger(__name__)

_NO_NOVA = "there is no Nova beside an embedded Placement"


def read_snapshot(path: str) -> Snapshot:
    """Return the snapshot in a file, and log its time; ``-`` is standard input.

    :raises InvalidInput: with every fault of the document.
    """
    with without_collections():
        document = read_json(path, "give the whole file of cpu-tiers cloud snapshot")
        snapshot = Snapshot.parse(document, where=path)
    if snapshot.taken:
        LOG.info("%s: snapshot of %s", path, moment(snapshot.taken))
    return snapshot


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep the garbage collector out of a block that makes many objects and few cycles.

    The objects of a large snapshot live as long as the command. The collector would visit all of
    them again and again: a third of the time of ``cloud show`` for 10,000 hosts.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def moment(time: datetime) -> str:
    """Return a time in UTC as a person reads it: ``2026-11-23 08:00 UTC``."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def warn_of_left_out_flavors(faults: FaultList) -> None:
    """Log the faults of flavors that an answer leaves out."""
    for fault in faults.faults:
        LOG.warning("A flavor is left out: %s", fault)


class CloudSource:
    """What a command reads of a cloud, from the cloud or from a snapshot.

    :param snapshot_path: the file of the snapshot; ``None`` for the cloud.
    :param has_nova: whether there is a Nova beside the Placement.
    :param jobs: so many requests at the same time read all providers.
    :param databases: what is read in place of the APIs; ``None`` for the APIs.
    :ivar snapshot: ``None`` for the cloud.
    :ivar has_nova: whether there is a Nova to ask.
    :raises InvalidInput: the file is no snapshot.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        placement: Callable[[], AbstractContextManager[PlacementClient]],
        snapshot_path: str | None,
        *,
        has_nova: bool = True,
        jobs: int = 1,
        databases: "Databases | None" = None,
    ) -> None:
        self.jobs, self.databases = jobs, databases
        self.has_nova = has_nova and snapshot_path is None
        self._services, self._placement, self._path = services, placement, snapshot_path
        self.snapshot = None if snapshot_path is None else read_snapshot(snapshot_path)

    @property
    def name(self) -> str:
        """Return where flavors come from, for a message or a list."""
        return NOVA if self._path is None else self._path

    def services(self) -> Services:
        """Return the services of the cloud.

        :raises InvalidInput: there is a snapshot in place of the cloud.
        """
        if self._path is not None:
            raise InvalidInput.of(
                "--snapshot",
                "a snapshot has no servers, images, ports and names of aggregates",
                "give files, the flavor in place of the server, and uuids of aggregates",
            )
        return self._services()

    def placement(self) -> AbstractContextManager[PlacementClient]:
        """Open a client of Placement, or of the snapshot."""
        if self.snapshot is None and self.databases is None:
            return self._placement()
        return nullcontext(self._memory)

    @cached_property
    def _memory(self) -> SnapshotClient:
        """Return a client of the snapshot, or of what the databases have."""
        if self.databases:
            return SnapshotClient(self.databases.placement)
        assert self.snapshot is not None, "asked before"  # noqa: S101  # narrows the type
        return SnapshotClient(self.snapshot)

    def nova(self) -> NovaSource:
        """Return what tells the servers of the cloud: Nova's databases, or its API.

        :raises InvalidInput: there is a snapshot in place of the cloud.
        :raises ComputeApiUnavailable: the databases do not answer.
        """
        return self.databases.nova if self.databases else NovaApi(self.services())

    def consumer(self, uuid: str) -> Consumer:
        """Return a consumer as Placement has it now."""
        if self.databases:
            return self.databases.consumer(uuid)
        with self.placement() as client:
            return client.consumer(uuid)

    @cached_property
    def compute_services(self) -> tuple[ComputeService, ...]:
        """Return the nova-compute services of all hosts.

        :raises ComputeApiUnavailable: Nova does not answer.
        """
        return self.nova().compute_services()

    @cached_property
    def service_states(self) -> ServiceStates:
        """Return which hosts have a nova-compute that takes servers, as far as Nova answers."""
        if self.snapshot is not None:
            return self.snapshot.service_states()
        if not self.has_nova:
            return ServiceStates(unknown=_NO_NOVA)
        try:
            services = self.compute_services
        except ComputeApiUnavailable as error:
            return ServiceStates(unknown=str(error))
        with self.placement() as client:
            return states_of(client, services)

    @cached_property
    def aggregates(self) -> HostAggregates:
        """Return the host aggregates of Nova, as far as Nova or the snapshot tells them."""
        if self.snapshot is not None:
            servers = self.snapshot.servers
            if servers is None or AGGREGATES in servers.unread:
                return HostAggregates(unknown="the snapshot does not have their metadata")
            return HostAggregates(servers.aggregates)
        if not self.has_nova:
            return HostAggregates(unknown=_NO_NOVA)
        try:
            services = self.compute_services
            return HostAggregates(read_host_aggregates(self.nova(), services))
        except ComputeApiUnavailable as error:
            return HostAggregates(unknown=str(error))

    def flavors_named(self, names: Sequence[str]) -> list[Flavor]:
        """Return the flavors with these names, or in the cloud with these ids."""
        if self.snapshot is None:
            return find_flavors(self.nova(), names)
        flavors = {flavor.name: flavor for flavor in reversed(self._flavors_of_snapshot())}
        masked = ", whose names are masked" if self.snapshot.is_masked else ""
        for name in names:
            if name not in flavors:
                given = f"not a flavor of the snapshot{masked}"
                hint = advice(name, list(flavors)[::-1], "name a flavor of the snapshot")
                raise InvalidInput.of(f"--flavor {name}", given, hint)
        return [flavors[name] for name in names]

    def flavors(self, faults: FaultList, check: Check = no_check) -> Iterator[Flavor]:
        """Yield all flavors.

        :param faults: collects the faults of flavors that Nova has; these flavors are left out.
        :param check: returns further faults of a flavor.
        """
        if self.snapshot is not None:
            yield from self._flavors_of_snapshot()
            return
        for document in self.nova().flavors():
            flavor = faults.read(flavor_of, document, NOVA, check)
            if flavor is not None:
                yield flavor

    def _flavors_of_snapshot(self) -> tuple[Flavor, ...]:
        assert self.snapshot is not None, "asked before"  # noqa: S101  # narrows the type
        if not self.snapshot.flavors:
            allowed = "give the flavor as a file, or write a snapshot without --no-flavors"
            raise InvalidInput.of(self.name, "the snapshot has no flavors", allowed)
        return self.snapshot.flavors
