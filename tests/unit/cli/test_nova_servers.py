"""The servers of Nova, and a whole cloud: servers, groups, migrations, hosts and aggregates."""

import pytest

from cpu_tiers.model.flavor import Flavor, Image
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
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of
from tests.unit.compute_api.nova_cloud import answers, cloud_of


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
