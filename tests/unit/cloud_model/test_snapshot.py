"""Snapshots as documents: every fault with its place, and the same cloud again."""

import copy
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from tests.unit.cloud_model.clouds import group, provider, providers_of, query

SNAPSHOT = Snapshot(
    providers=(
        provider("a", None, "RED", aggregate="z", VCPU=4, MEMORY_MB=64),
        provider("a-node", "a", CARD=1),
    ),
    consumers={"server": {"a": {"VCPU": 3}}, "other": {"a": {"MEMORY_MB": 8}}},
    flavors=(Flavor(name="small", vcpus=2, memory_mb=16, extra_specs={"hw:cpu_policy": "mixed"}),),
)


def test_a_snapshot_survives_the_json_document() -> None:
    assert Snapshot.parse(SNAPSHOT.to_json(), where="s") == SNAPSHOT


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-23T08:00:00Z", "2026-11-23T08:00:00Z"),
        ("2026-11-23T09:30:00.5+01:30", "2026-11-23T08:00:00Z"),
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
    ],
)
def test_the_time(text: str, written: str) -> None:
    document = {**SNAPSHOT.to_json(), "taken": text}
    snapshot = Snapshot.parse(document, where="s")
    assert snapshot.to_json()["taken"] == written
    assert masked(snapshot).taken == snapshot.taken
    assert "taken" not in SNAPSHOT.to_json()  # a file from before


def test_the_cloud_has_the_allocations_of_all_consumers() -> None:
    one, two = query(group(VCPU=1)), query(group(VCPU=2))
    assert providers_of(SNAPSHOT.cloud().candidates(one)) == [{"": "a"}]  # 4 - 3
    assert providers_of(SNAPSHOT.cloud().candidates(two)) == []
    assert providers_of(SNAPSHOT.cloud(is_empty=True).candidates(two)) == [{"": "a"}]


def broken(*keys: Any, value: Any) -> dict[str, Any]:
    """Return the document with another value at a place."""
    document: Any = copy.deepcopy(SNAPSHOT.to_json())
    place = document
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return dict(document)


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        pytest.param([], "s: got a list; give an object", id="no object"),
        pytest.param(
            {}, "s: format 'None'; give a file of cpu-tiers cloud snapshot", id="no format"
        ),
        pytest.param(broken("version", value=4), "version 4, newer than version 3", id="newer"),
        pytest.param(broken("version", value=10**99), f"1{'0' * 59}, newer than", id="huge"),
        pytest.param(broken("version", value=0), "version 0, not 3; write a new", id="older"),
        pytest.param(
            broken("taken", value="2026-11-23T08:00:00"), "s, taken: got '2026-", id="no zone"
        ),
        pytest.param(broken("taken", value="soon"), "give a time as 2026-11-23T08", id="no time"),
        pytest.param(broken("taken", value=1795420800), "s, taken: got 1795420800", id="a number"),
        pytest.param(
            broken("taken", value="0001-01-01T00:00:00+14:00"), "s, taken: got", id="year 0"
        ),
        pytest.param(broken("extra", value=1), "s, extra: got 1; cpu-tiers knows", id="a key"),
        pytest.param(
            broken("providers", 1, "parent_uuid", value="x"),
            "s, providers, a-node, parent_uuid: got 'x'",
            id="an unknown parent",
        ),
        pytest.param(
            broken("providers", 0, "parent_uuid", value="a-node"),
            "s, providers, a, parent_uuid: got 'a'",
            id="a circle",
        ),
        pytest.param(
            broken("providers", 1, "uuid", value="a"),
            "s, providers, 1, uuid: got 'a'; name each provider once",
            id="a provider twice",
        ),
        pytest.param(
            broken("providers", 1, "name", value="a"),
            "s, providers, 1, name: got 'a'; give each provider a name of its own",
            id="a name twice",
        ),
        pytest.param(
            broken("providers", 0, "inventories", "VCPU", "total", value=0),
            "inventories, VCPU, total: got 0; give a whole number from 1 to 2147483647",
            id="no total",
        ),
        pytest.param(
            broken("providers", 0, "inventories", "VCPU", "allocation_ratio", value=True),
            "allocation_ratio: got True; give a number above 0",
            id="a ratio",
        ),
        pytest.param(
            broken("providers", 0, "inventories", "VCPU", "total", value=10**400),
            "VCPU, total: got 1000",
            id="more than Placement takes",
        ),
        pytest.param(
            broken("consumers", "server", "a", "VCPU", value=2**31),
            "VCPU: got 2147483648; give a whole number from 1 to 2147483647",
            id="an amount above the bound",
        ),
        pytest.param(
            broken("consumers", "server", "x", value={}),
            "s, consumers server, x: got 'x'; name a provider of this document",
            id="an unknown provider",
        ),
        pytest.param(
            broken("consumers", "server", "a", "VCPU", value="3"),
            "s, consumers server, a, VCPU: got '3'; give a whole number from 1 to 2147483647",
            id="an amount",
        ),
        pytest.param(
            broken("flavors", 0, "vcpus", value=0), "flavor small, vcpus: got 0", id="a size"
        ),
    ],
)
def test_faults(document: object, fault: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Snapshot.parse(document, where="s")
    assert fault in str(error.value)


def test_all_faults_at_once() -> None:
    document = broken("flavors", 0, "vcpus", value=0) | {"providers": [7], "more": 1}
    with pytest.raises(InvalidInput) as error:
        Snapshot.parse(document, where="s")
    # the key, the provider, the three providers of consumers and the size
    assert len(error.value.faults) == 5


def test_a_chain_of_providers_ends() -> None:
    """Provider 0 has 64 providers above and passes, as all above; the next provider has 65."""
    document: Any = copy.deepcopy(SNAPSHOT.to_json())
    first = document["providers"][0]
    document["consumers"] = {}
    document["providers"] = [
        {**first, "uuid": str(n), "name": str(n), "parent_uuid": str(n - 1) if n else None}
        for n in range(20_000)
    ]
    with pytest.raises(InvalidInput) as error:
        Snapshot.parse(document, where="s")
    assert len(error.value.faults) == 20_000 - 65
    allowed = "a provider has at most 64 providers above"
    assert str(error.value.faults[0]) == f"s, providers, 65, parent_uuid: got '0'; {allowed}"
