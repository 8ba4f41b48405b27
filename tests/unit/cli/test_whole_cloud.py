"""A whole cloud as a snapshot: the servers, groups and hosts of Nova."""

from contextlib import nullcontext
from typing import Any

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import ServerGroup, SnapshotServer
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from tests.unit.cloud_model.clouds import provider
from tests.unit.compute_api.catalog import Catalog

FLAVOR = {"original_name": "f", "vcpus": 1, "ram": 2, "disk": 0, "extra_specs": {}}
SERVERS = [
    {"id": "a", "name": "web", "status": "ACTIVE", "flavor": FLAVOR, "locked": True},
    {"id": "b", "name": "db", "status": "SHUTOFF", "OS-EXT-STS:task_state": "powering-on"},
]
GROUPS = [
    {"id": "g", "name": "apart", "policy": "anti-affinity", "members": ["a", "b"],
     "rules": {"max_server_per_host": 2}},
]  # fmt: skip
NODE = {"id": "n", "hypervisor_hostname": "n", "status": "enabled", "service": {"host": "short"}}
ANSWERS: dict[tuple[str, str], object] = {
    ("compute", "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid"): {"flavors": []},
    ("compute", "/servers/detail?all_tenants=1&limit=1000"): {"servers": SERVERS},
    ("compute", "/os-server-groups?all_projects=true&limit=1000&offset=0"): {
        "server_groups": GROUPS
    },
    ("compute", "/os-hypervisors/detail?limit=1000"): {"hypervisors": [{**NODE, "state": "down"}]},
}


def test_the_servers() -> None:
    placed = Snapshot(
        providers=(provider("n", None, VCPU=4),), consumers={"a": {"n": {"VCPU": 1}}}
    )
    client: Any = nullcontext(SnapshotClient(placed))
    cloud = CloudSource(Catalog(ANSWERS).services, lambda: client, None)
    snapshot = read_snapshot_of(cloud, asks_nova=True)
    assert snapshot.servers is not None
    assert snapshot.servers.servers == {
        "a": SnapshotServer(
            name="web",
            flavor=Flavor(name="f", vcpus=1, memory_mb=2),
            state="ACTIVE",
            is_locked=True,
        ),
        "b": SnapshotServer(name="db", state="SHUTOFF", task="powering-on"),
    }
    assert snapshot.servers.groups == {
        "g": ServerGroup(name="apart", policy="anti-affinity", most=2, members=("a", "b"))
    }
    assert (snapshot.servers.services, snapshot.servers.down) == ({"n": "short"}, ("n",))
    assert read_snapshot_of(cloud, asks_nova=False).servers is None
