"""Masked snapshots: no name and no id is left, and the cloud takes the same servers."""

import json
from dataclasses import replace

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)
from tests.unit.cloud_model.clouds import SHARES, group, provider, providers_of, query

SNAPSHOT = Snapshot(
    providers=(
        provider("secret-a", None, "RED", aggregate="secret-z", VCPU=4),
        provider("secret-a-node", "secret-a", CARD=1),
        provider("secret-b", None, VCPU=4),
        provider("secret-pool", None, SHARES, aggregate="secret-z", DISK=8),
    ),
    consumers={"secret-server": {"secret-a": {"VCPU": 3}, "secret-pool": {"DISK": 4}}},
    flavors=(
        Flavor(
            name="secret-flavor",
            vcpus=2,
            memory_mb=16,
            extra_specs={"trait:RED": "required", "aggregate_instance_extra_specs:secret": "x"},
        ),
    ),
)

SERVERS = SnapshotServers(
    servers={
        "secret-server": SnapshotServer(
            name="secret-web",
            flavor=SNAPSHOT.flavors[0],
            lock_reason="secret-plan",
            host="secret-a",
            project="secret-acme",
            zone="secret-az",
            hints={"group": ("secret-group",), "different_host": ("secret-server", "secret-gone")},
            image=Image("secret-image", {"trait:RED": "required", "secret": "x"}),
        ),
    },
    groups={
        "secret-group": ServerGroup(
            name="secret-g", policy="anti-affinity", members=("secret-server",)
        )
    },
    migrations={
        "secret-move": ServerMigration(
            server="secret-server",
            kind="resize",
            status="finished",
            source="secret-b",
            target="secret-a",
        )
    },
    aggregates={
        "secret-z": SnapshotAggregate(
            name="secret-zone",
            zone="secret-az",
            hosts=("secret-a", "secret-b"),
            metadata={
                "availability_zone": "secret-az",
                "filter_tenant_id": "secret-acme, secret-other",
                "cpu_weight_multiplier": "2.0",
                "secret": "x",
            },
        )
    },
    services={"secret-a": "secret-compute"},
    down=("secret-b",),
    unread=frozenset(),
)


def test_of_servers_their_places_stay_and_their_names_go() -> None:
    new = masked(replace(SNAPSHOT, servers=SERVERS))
    assert "secret" not in json.dumps(new.to_json())
    assert new.servers is not None
    ((uuid, server),) = new.servers.servers.items()
    assert uuid in new.consumers
    assert (server.host, server.zone) == ("host-1", "zone-1")
    ((group, _),) = new.servers.groups.items()
    assert server.hints == {"group": (group,), "different_host": (uuid, "masked")}
    assert server.image == Image("image-1", {"trait:RED": "required"})
    ((_, aggregate),) = new.servers.aggregates.items()
    assert aggregate == SnapshotAggregate(
        name="aggregate-1",
        zone="zone-1",
        hosts=("host-1", "host-2"),
        metadata={
            "cpu_weight_multiplier": "2.0",
            "filter_tenant_id": f"{server.project},masked",
            "availability_zone": "zone-1",
        },
    )
    assert new.servers.aggregates.keys() == new.providers[0].aggregates
    ((_, move),) = new.servers.migrations.items()
    assert (move.server, move.source, move.target) == (uuid, "host-2", "host-1")
    assert masked(new) == new


def test_no_name_and_no_id_is_left() -> None:
    assert "secret" not in json.dumps(masked(SNAPSHOT).to_json())
    assert [provider.name for provider in masked(SNAPSHOT).providers] == [
        "host-1",
        "host-1-provider-1",
        "host-2",
        "host-3",
    ]
    (flavor,) = masked(SNAPSHOT).flavors
    assert flavor == Flavor(
        name="flavor-1", vcpus=2, memory_mb=16, extra_specs={"trait:RED": "required"}
    )


def test_a_masked_snapshot_has_the_candidates_of_the_original() -> None:
    other = Snapshot.parse(masked(SNAPSHOT).to_json(), where="s")
    assert other.is_masked
    uuids = [provider.uuid for provider in other.providers]
    names = dict(zip(uuids, (p.uuid for p in SNAPSHOT.providers), strict=True))
    for asked in (
        query(group(VCPU=1, DISK=2)),
        query(group(VCPU=1, CARD=1)),
        query(group(VCPU=2)),
    ):
        found = [
            {suffix: "+".join(names[uuid] for uuid in joined.split("+"))}
            for candidate in providers_of(other.cloud().candidates(asked))
            for suffix, joined in candidate.items()
        ]
        assert sorted(found, key=str) == providers_of(SNAPSHOT.cloud().candidates(asked))


def test_masking_twice_changes_nothing() -> None:
    once = masked(SNAPSHOT)
    assert masked(once) == replace(once, is_masked=True)
