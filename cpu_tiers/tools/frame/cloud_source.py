"""The cloud that a command asks: its services, or a snapshot in their place."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.similar_names import advice
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.compute_api.flavors import read_flavors as read_novas_flavors
from cpu_tiers.tools.frame.cloud_objects import NOVA, find_flavors
from cpu_tiers.tools.frame.documents import Check, flavor_of, read_json
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from cpu_tiers.tools.simulation.snapshot import Snapshot

LOG = logging.getLogger(__name__)


def read_snapshot(path: str) -> Snapshot:
    """Return the snapshot in a file, and log its time; ``-`` is standard input.

    :raises InvalidInput: with every fault of the document.
    """
    snapshot = Snapshot.parse(
        read_json(path, "give the whole file of cpu-tiers cloud snapshot"), where=path
    )
    if snapshot.taken:
        LOG.info("%s: snapshot of %s", path, moment(snapshot.taken))
    return snapshot


def moment(time: datetime) -> str:
    """Return a time in UTC as a person reads it: ``2026-11-23 08:00 UTC``."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


class CloudSource:
    """What a command reads of a cloud, from the cloud or from a snapshot.

    :param services: returns the services of the cloud.
    :param placement: opens a client of Placement.
    :param snapshot_path: the file of the snapshot; ``None`` for the cloud.
    :ivar snapshot: ``None`` for the cloud.
    :raises InvalidInput: the file is no snapshot.
    """

    def __init__(
        self,
        services: Callable[[], Services],
        placement: Callable[[], AbstractContextManager[PlacementClient]],
        snapshot_path: str | None,
    ) -> None:
        """Read the snapshot; the cloud is asked later."""
        self._services, self._placement, self._path = services, placement, snapshot_path
        self.snapshot = None if snapshot_path is None else read_snapshot(snapshot_path)

    @property
    def name(self) -> str:
        """Return where flavors come from, for a message or a list."""
        return NOVA if self._path is None else self._path

    def services(self) -> Services:
        """Return the services of the cloud.

        :raises InvalidInput: there is a snapshot in place of the cloud.
        :raises PlacementMisconfigured: nova.conf has no complete section ``[placement]``.
        """
        if self._path is not None:
            raise InvalidInput.of(
                "--snapshot",
                "a snapshot has no servers, images, ports and names of aggregates",
                "give files, the flavor in place of the server, and uuids of aggregates",
            )
        return self._services()

    def placement(self) -> AbstractContextManager[PlacementClient]:
        """Open a client of Placement, or of the snapshot.

        :raises PlacementMisconfigured: nova.conf has no complete section ``[placement]``.
        """
        return (
            self._placement()
            if self.snapshot is None
            else nullcontext(SnapshotClient(self.snapshot))
        )

    def flavors_named(self, names: Sequence[str]) -> list[Flavor]:
        """Return the flavors with these names, or in the cloud with these ids.

        :raises InvalidInput: there is no such flavor.
        :raises ComputeApiUnavailable: Nova does not answer.
        """
        if self.snapshot is None:
            return find_flavors(self._services(), names)
        flavors = {flavor.name: flavor for flavor in reversed(self._flavors_of_snapshot())}
        masked = ", whose names are masked" if self.snapshot.is_masked else ""
        for name in names:
            if name not in flavors:
                given = f"not a flavor of the snapshot{masked}"
                hint = advice(name, list(flavors)[::-1], "name a flavor of the snapshot")
                raise InvalidInput.of(f"--flavor {name}", given, hint)
        return [flavors[name] for name in names]

    def flavors(self, faults: FaultList, check: Check) -> Iterator[Flavor]:
        """Yield all flavors.

        :param faults: collects the faults of flavors that Nova has; these flavors are left out.
        :param check: returns further faults of a flavor.
        :raises ComputeApiUnavailable: Nova does not answer.
        """
        if self.snapshot is not None:
            yield from self._flavors_of_snapshot()
            return
        for document in read_novas_flavors(self._services()):
            flavor = faults.read(flavor_of, document, NOVA, check)
            if flavor is not None:
                yield flavor

    def _flavors_of_snapshot(self) -> tuple[Flavor, ...]:
        assert self.snapshot is not None, "asked before"  # noqa: S101  # narrows the type
        if not self.snapshot.flavors:
            allowed = "give the flavor as a file, or write a snapshot without --no-flavors"
            raise InvalidInput.of(self.name, "the snapshot has no flavors", allowed)
        return self.snapshot.flavors
