"""Clouds of a few hosts with servers, whose servers a plan moves."""

from collections.abc import Iterable

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer, SnapshotServers
from tests.unit.cloud_model.clouds import provider

SMALL = Flavor(name="small", vcpus=4, memory_mb=16)
LARGE = Flavor(name="large", vcpus=6, memory_mb=16)


def cloud(
    *, state: str = "ACTIVE", hosts: int = 2, unread: Iterable[str] = ()
) -> dict[str, object]:
    """Return hosts of 8 CPUs, of which the first two have a server of 4 CPUs each.

    :param unread: what Nova did not say.
    """
    names = [f"cn{number}" for number in range(hosts)]
    servers = {f"id-{number}": number for number in range(2)}
    return Snapshot(
        providers=tuple(provider(name, None, VCPU=8, MEMORY_MB=99) for name in names),
        consumers={
            uuid: {f"cn{number}": {"VCPU": 4, "MEMORY_MB": 16}} for uuid, number in servers.items()
        },
        flavors=(SMALL, LARGE),
        servers=SnapshotServers(
            servers={
                uuid: SnapshotServer(
                    name=f"web{number}",
                    flavor=SMALL,
                    state=state,
                    host=f"cn{number}",
                    is_from_volume=True,
                )
                for uuid, number in servers.items()
            },
            services={"cn1": "compute1"},
            unread=frozenset(unread),
        ),
    ).to_json()
