"""Masked snapshots: no name and no id is left, and the cloud takes the same servers."""

import json
from dataclasses import replace

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
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
