"""A whole cloud as a snapshot: the servers, groups and hosts of Nova."""

from contextlib import nullcontext
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    AGGREGATES,
    HINTS,
    HOST,
    IMAGE,
    IMAGE_TRAITS,
    MIGRATIONS,
    ZONE,
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
)
from cpu_tiers.tools.compute_api import IN_PROGRESS
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of, with_places
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from tests.unit.cloud_model.clouds import provider
from tests.unit.compute_api.catalog import Catalog

FLAVOR = {"original_name": "f", "vcpus": 1, "ram": 2, "disk": 0, "extra_specs": {}}
SERVERS = [
    {"id": "a", "name": "web", "status": "ACTIVE", "flavor": FLAVOR, "locked": True,
     "locked_reason": "mine", "tenant_id": "acme", "OS-EXT-SRV-ATTR:host": "short",
     "OS-EXT-SRV-ATTR:hypervisor_hostname": "n", "pinned_availability_zone": "az1",
     "scheduler_hints": {"different_host": ["b"], "group": "g"},
     "image": {"id": "i", "properties": {"hw_disk_bus": "virtio", "os_distro": "debian"}}},
    {"id": "b", "name": "db", "status": "SHUTOFF", "OS-EXT-STS:task_state": "powering-on",
     "OS-EXT-SRV-ATTR:host": None, "OS-EXT-SRV-ATTR:hypervisor_hostname": None,
     "pinned_availability_zone": None, "scheduler_hints": None, "image": ""},
    {"id": "c", "status": "ACTIVE", "OS-EXT-SRV-ATTR:hypervisor_hostname": "n",
     "pinned_availability_zone": None, "scheduler_hints": {},
     "image": {"id": "deleted", "properties": {}}},
    {"id": "d", "status": "UNKNOWN"},
]  # fmt: skip
GROUPS = [
    {"id": "g", "name": "apart", "policy": "anti-affinity", "members": ["a", "b"],
     "rules": {"max_server_per_host": 2}},
]  # fmt: skip
NODE = {"id": "n", "hypervisor_hostname": "n", "status": "enabled", "service": {"host": "short"}}
MIGRATION = {"id": 7, "uuid": "m", "instance_uuid": "a", "migration_type": "resize",
             "status": "finished", "source_node": "other", "dest_node": "n"}  # fmt: skip
AGGREGATE = {"uuid": "z", "name": "fast", "availability_zone": "az1", "hosts": ["short"],
             "metadata": {"availability_zone": "az1", "ssd": "true"}}  # fmt: skip
IMAGES = [{"id": "i", "trait:HW_CPU_X86_AVX2": "required", "hw_disk_bus": "later"}]


def answers() -> dict[tuple[str, str], object]:
    """Return the answers of a cloud."""
    statuses = dict.fromkeys(IN_PROGRESS, ()) | {"finished": (MIGRATION,)}
    bodies = {
        "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid": {"flavors": []},
        "/servers/detail?all_tenants=1&limit=1000": {"servers": SERVERS},
        "/os-server-groups?all_projects=true&limit=1000&offset=0": {"server_groups": GROUPS},
        "/os-hypervisors/detail?limit=1000": {"hypervisors": [{**NODE, "state": "down"}]},
        "/os-aggregates": {"aggregates": [AGGREGATE]},
        **{
            f"/os-migrations?status={status}&limit=1000": {"migrations": migrations}
            for status, migrations in statuses.items()
        },
    }
    images = "/v2/images?visibility=all&os_hidden={}&limit=1000"
    return {
        **{("compute", path): body for path, body in bodies.items()},
        ("image", images.format("false")): {"images": IMAGES},
        ("image", images.format("true")): {"images": []},
    }


def cloud_of(
    table: dict[tuple[str, str], object], consumers: dict[str, dict[str, dict[str, int]]]
) -> CloudSource:
    placed = Snapshot(providers=(provider("n", None, VCPU=4),), consumers=consumers)
    client: Any = nullcontext(SnapshotClient(placed))
    return CloudSource(Catalog(table).services, lambda: client, None)


def test_the_servers() -> None:
    cloud = cloud_of(answers(), {"a": {"n": {"VCPU": 1}}})
    servers = read_snapshot_of(cloud, asks_nova=True).servers
    assert servers is not None
    assert servers.servers == {
        "a": SnapshotServer(
            name="web",
            flavor=Flavor(name="f", vcpus=1, memory_mb=2),
            state="ACTIVE",
            is_locked=True,
            lock_reason="mine",
            project="acme",
            host="n",
            zone="az1",
            hints={"different_host": ("b",), "group": ("g",)},
            image=Image(
                "i",
                {
                    "hw_disk_bus": "virtio",  # as it was when the server was made
                    "os_distro": "debian",
                    "trait:HW_CPU_X86_AVX2": "required",
                },
            ),
        ),
        "b": SnapshotServer(
            name="db",
            state="SHUTOFF",
            task="powering-on",
            is_from_volume=True,
            unread=frozenset({IMAGE}),
        ),
        "c": SnapshotServer(
            name="c",
            state="ACTIVE",
            host="n",
            image=Image("deleted"),
            unread=frozenset({IMAGE_TRAITS}),
        ),
        "d": SnapshotServer(
            name="d", state="UNKNOWN", unread=frozenset({HOST, ZONE, HINTS, IMAGE})
        ),
    }
    assert servers.groups == {
        "g": ServerGroup(name="apart", policy="anti-affinity", most=2, members=("a", "b"))
    }
    assert servers.migrations == {
        "m": ServerMigration(
            server="a", kind="resize", status="finished", source="other", target="n"
        )
    }
    assert servers.aggregates == {
        "z": SnapshotAggregate(
            name="fast",
            zone="az1",
            hosts=("n",),
            metadata={"availability_zone": "az1", "ssd": "true"},
        )
    }
    assert (servers.services, servers.down) == ({"n": "short"}, ("n",))
    assert not servers.unread
    assert read_snapshot_of(cloud, asks_nova=False).servers is None


def test_what_a_cloud_does_not_say_is_unread(caplog: pytest.LogCaptureFixture) -> None:
    table = answers()
    del table["compute", "/os-aggregates"]
    del table["compute", "/os-migrations?status=accepted&limit=1000"]
    table = {key: body for key, body in table.items() if key[0] != "image"}
    old = [{"id": "a", "OS-EXT-SRV-ATTR:hypervisor_hostname": "n", "image": {"id": "i"}}]
    table["compute", "/servers/detail?all_tenants=1&limit=1000"] = {"servers": old}
    servers = read_snapshot_of(cloud_of(table, {}), asks_nova=True).servers
    assert servers is not None
    assert servers.unread == {ZONE, HINTS, IMAGE, IMAGE_TRAITS, MIGRATIONS, AGGREGATES}
    assert "the metadata of host aggregates: not known: GET /os-aggregates" in caplog.text


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
