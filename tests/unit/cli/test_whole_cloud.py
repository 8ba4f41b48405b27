"""A whole cloud as a snapshot, whose parts are not of one moment."""

from contextlib import nullcontext
from typing import Any

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.whole_cloud import with_places
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from tests.unit.cloud_model.clouds import provider
from tests.unit.compute_api.catalog import Catalog
from tests.unit.compute_api.nova_cloud import answers


class Later(SnapshotClient):
    """Answers what consumers have by now."""

    def consumer(self, consumer_uuid: str) -> Consumer:
        held = {"n": {"VCPU": 2}} if consumer_uuid == "c" else {}
        return Consumer(uuid=consumer_uuid, allocations=Portion.by_id(held))


def test_a_consumer_that_looks_wrong_is_read_again() -> None:
    """Between the answers of Placement and of Nova, a server is deleted, and c moves to n."""
    before = Snapshot(
        providers=(provider("n", None, VCPU=4), provider("old", None, VCPU=4)),
        consumers={"gone": {"n": {"VCPU": 1}}, "c": {"old": {"VCPU": 2}}},
    )
    client: Any = nullcontext(Later(before))
    cloud = CloudSource(Catalog(answers()).services, lambda: client, None)
    after = with_places(cloud, before, must_answer=True)
    assert after.consumers == {"c": {"n": {"VCPU": 2}}}
