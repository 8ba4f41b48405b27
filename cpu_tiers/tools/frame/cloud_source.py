"""The cloud that a command asks: its services, or a snapshot in their place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.compute_api.objects import read_flavors as read_novas_flavors
from cpu_tiers.tools.frame.cloud_objects import NOVA, find_flavors
from cpu_tiers.tools.frame.flavor_documents import Check, flavor_of
from cpu_tiers.tools.frame.snapshot_argument import flavor_in, flavors_of, read_snapshot
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient


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
        if self.snapshot is not None and self._path is not None:
            snapshot, path = self.snapshot, self._path
            return [flavor_in(snapshot, path, name) for name in names]
        return find_flavors(self._services(), names)

    def flavors(self, faults: FaultList, check: Check) -> Iterator[Flavor]:
        """Yield all flavors.

        :param faults: collects the faults of flavors that Nova has; these flavors are left out.
        :param check: returns further faults of a flavor.
        :raises ComputeApiUnavailable: Nova does not answer.
        """
        if self.snapshot is not None and self._path is not None:
            yield from flavors_of(self.snapshot, self._path)
            return
        for document in read_novas_flavors(self._services()):
            flavor = faults.read(flavor_of, document, NOVA, check)
            if flavor is not None:
                yield flavor
