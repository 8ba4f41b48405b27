"""``weigh`` on what a real Placement answers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.placement.session import load_adapter

Command = Callable[..., Any]


@pytest.fixture
def adapter(placement_conf: Path) -> Iterator[Adapter]:
    """Placement without our client: what is written to the file is its own answer."""
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(placement_conf)], project="nova")
    adapter = load_adapter(conf)
    yield adapter
    adapter.session.session.close()


@pytest.fixture
def hosts(client: PlacementClient) -> dict[str, str]:
    """Three hosts with 16, 8 and 4 VCPU; the last keeps them in a NUMA node.

    The last also shares its disk with others, which makes it no less a host.
    """

    def provider(name: str, parent: str | None = None, **totals: int) -> str:
        uuid = client.create_provider(name, parent_uuid=parent).uuid
        by_class = {n: Inventory(total=total, max_unit=total) for n, total in totals.items()}
        client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
        return uuid

    uuids = {
        "roomy": provider("roomy", VCPU=16, MEMORY_MB=8192),
        "middling": provider("middling", VCPU=8, MEMORY_MB=8192),
        "nested": provider("nested", DISK_GB=100),
    }
    provider("nested_NUMA0", uuids["nested"], VCPU=4, MEMORY_MB=8192)
    traits = frozenset({"MISC_SHARES_VIA_AGGREGATE"})
    client.set_traits(uuids["nested"], Traits(generation=1, names=traits))
    return uuids


def test_best_first(
    run: Command, save: Command, flavor: Command, adapter: Adapter, hosts: dict[str, str]
) -> None:
    path = flavor({}, vcpus=2, ram=4096, disk=0)
    conf = save("", "more.conf")
    query = run("request", "show", path, "--config-file", conf, "-f", "value", "-c", "query")
    answer = adapter.get(
        f"/allocation_candidates?{query.stdout.strip()}",
        headers={"OpenStack-API-Version": "placement 1.36"},
    ).json()
    arguments = ("--candidates", save(answer, "answer.json"), "--config-file", conf, "-f", "json")
    for scoring, expected in {
        # VCPU: 1 - 2/16, 1 - 2/8, 1 - 2/4; MEMORY_MB: 1 - 4096/8192 each; no trait asked for.
        # literal: DISK_GB of the last counts 1; no trait is matched: 0.
        "literal": {"roomy": 0.6875 / 2, "middling": 0.625 / 2, "nested": (2 / 3) / 2},
        # boring: DISK_GB of the last counts 0, its one trait 1 / (1 + 1); the others have none: 1.
        "boring": {"roomy": 1.6875 / 2, "middling": 1.625 / 2, "nested": (1 / 3 + 0.5) / 2},
    }.items():
        rows = json.loads(run("weigh", path, *arguments, "--scoring", scoring).stdout)
        scores = {row["host"]: row["score"] for row in rows}
        assert scores == pytest.approx({hosts[name]: score for name, score in expected.items()})
        order = sorted(expected, key=lambda name: -expected[name])
        assert [row["host"] for row in rows] == [hosts[name] for name in order]


def test_equal_hosts_stand_in_the_order_of_their_uuids(
    run: Command, save: Command, flavor: Command
) -> None:
    uuids = [f"{digit}0000000-0000-4000-8000-000000000000" for digit in "312"]
    summaries: dict[str, Any] = {
        uuid: {
            "resources": {"VCPU": {"capacity": 4, "used": 0}},
            "traits": [],
            "parent_provider_uuid": None,
            "root_provider_uuid": uuid,
        }
        for uuid in uuids
    }
    answer = save({"allocation_requests": [], "provider_summaries": summaries}, "answer.json")
    rows = json.loads(run("weigh", flavor({}), "--candidates", answer, "-f", "json").stdout)
    assert [row["host"] for row in rows] == sorted(uuids)


def test_the_specs_name_of_the_class_is_understood_in_options(
    run: Command, save: Command, flavor: Command
) -> None:
    uuid = "10000000-0000-4000-8000-000000000000"
    amount = {"capacity": 400, "used": 0}
    summary: dict[str, Any] = {
        "resources": {"CUSTOM_VCPU_SHARES": amount, "VCPU_SHARES": amount, "VCPU": amount},
        "traits": [],
        "parent_provider_uuid": None,
        "root_provider_uuid": uuid,
    }
    answer = save(
        {"allocation_requests": [], "provider_summaries": {uuid: summary}}, "answer.json"
    )
    conf = save(
        "[filter_scheduler]\nresource_provider_resources = VCPU_SHARES\n"
        "query_placement_for_vcpu_shares = true\n",
        "nova.conf",
    )
    path = flavor({"quota:cpu_shares_multiplier": "100"})
    arguments = ("--candidates", answer, "--config-file", conf, "-f", "json")
    (row,) = json.loads(run("weigh", path, *arguments).stdout)
    assert list(row["resources"].values()) == [0.75]  # 1 - 100/400
