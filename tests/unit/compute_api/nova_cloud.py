"""A cloud of one host as Nova and Glance answer: servers, groups, a migration and an aggregate."""

from contextlib import nullcontext
from typing import Any

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.compute_api import IN_PROGRESS
from cpu_tiers.tools.frame.cloud_source import CloudSource
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
