"""``weigh`` on what a real Placement answers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.session import load_adapter
from cpu_tiers.weights import REQUESTED_TO_CAPACITY, SCORINGS

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


def test_equal_hosts_are_ordered_by_uuid(run: Command, save: Command, flavor: Command) -> None:
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


@pytest.mark.parametrize(
    ("count", "options", "shown"),
    [
        pytest.param(12, (), 10, id="a table has the best ten"),
        pytest.param(12, ("--all",), 12, id="--all shows all"),
        pytest.param(12, ("-f", "json"), 12, id="a program gets all"),
        pytest.param(10, (), 10, id="ten are all"),
    ],
)
def test_a_table_has_the_best_hosts(
    run: Command, save: Command, flavor: Command, count: int, options: tuple[str, ...], shown: int
) -> None:
    """Host 1 has the most room: its score is the largest."""
    uuids = [f"{number:08}-0000-4000-8000-000000000000" for number in range(1, count + 1)]
    summaries = {uuid: summary(uuid, 100 - n) for n, uuid in enumerate(uuids)}
    answer = save({"allocation_requests": [], "provider_summaries": summaries}, "answer.json")
    result = run("weigh", flavor({}), "--candidates", answer, *options)
    assert [uuid for uuid in uuids if uuid in result.stdout] == uuids[:shown]
    places = [result.stdout.index(uuid) for uuid in uuids[:shown]]
    assert places == sorted(places)
    says = f"The best {shown} of {count} hosts (--all shows them):"
    assert (says in result.stderr) == (shown < count)


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


def summary(root: str, capacity: int, *traits: str) -> dict[str, object]:
    return {
        "resources": {"VCPU": {"capacity": capacity, "used": 0}},
        "traits": traits,
        "parent_provider_uuid": None,
        "root_provider_uuid": root,
    }


def test_weigh_gives_the_host_of_the_spec_a_half(
    run: Command, flavor: Command, save: Command
) -> None:
    a, b, pool = (letter * 8 + "-0000-4000-8000-" + letter * 12 for letter in "abc")
    answer = {
        "allocation_requests": [],
        "provider_summaries": {
            b: summary(b, 2, "CUSTOM_SSD", "HW_CPU_X86_AVX2"),
            a: summary(a, 4, "CUSTOM_SSD", "HW_CPU_X86_AVX2"),
            pool: {
                **summary(pool, 1, "MISC_SHARES_VIA_AGGREGATE"),
                "resources": {"DISK_GB": {"capacity": 9, "used": 0}},
            },
        },
    }
    arguments = (
        *("weigh", flavor({"trait:CUSTOM_SSD": "required"}, vcpus=2)),
        *("--candidates", save(answer, "answer.json"), "--config-file", save("", "nova.conf")),
    )
    # A: 1 - 2/4 = 0.5, 1 of 2 traits; B: 1 - 2/2 = 0.0, 1 of 2 traits
    traits = {"CUSTOM_SSD": 1.0, "HW_CPU_X86_AVX2": 0.0}
    for scoring in SCORINGS:
        result = run(*arguments, "--scoring", scoring, "-f", "json")
        if scoring in ("best-fit", "fragmentation"):  # nothing would be left on B
            first, second = json.loads(result.stdout)
            assert (first["host"], first["score"], second["host"]) == (b, 1.0, a)
            assert second["score"] < 1
            continue
        if scoring == REQUESTED_TO_CAPACITY:  # only resources: 1 - 2/4 and 1 - 2/2
            rows = json.loads(result.stdout)
            assert [(row["host"], row["score"]) for row in rows] == [(a, 0.5), (b, 0.0)]
            continue
        assert json.loads(result.stdout) == [
            {
                "host": a,
                "score": 0.5,
                "resource_score": 0.5,
                "trait_score": 0.5,
                "resources": {"VCPU": 0.5},
                "traits": traits,
                "soft_traits": {},
            },
            {
                "host": b,
                "score": 0.25,
                "resource_score": 0.0,
                "trait_score": 0.5,
                "resources": {"VCPU": 0.0},
                "traits": traits,
                "soft_traits": {},
            },
        ]
    table = run(*arguments).stdout
    assert table.index(a) < table.index(b)
    for shown in ("VCPU 0.5000", "CUSTOM_SSD 1.0000", "others: 1"):
        assert shown in table
    assert "HW_CPU_X86_AVX2" not in table
    assert "HW_CPU_X86_AVX2 0.0000" in run(*arguments, "--all").stdout


def test_weigh_reads_options_from_nova_conf(run: Command, flavor: Command, save: Command) -> None:
    host = "a" * 8 + "-0000-4000-8000-" + "a" * 12
    resources = {name: {"capacity": 4, "used": 0} for name in ("VCPU", "VGPU", "MEMORY_MB")}
    answer = {
        "allocation_requests": [],
        "provider_summaries": {
            host: {**summary(host, 4, "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"), "resources": resources}
        },
    }
    conf = save(
        "[filter_scheduler]\nresource_provider_scoring = boring\n"
        "resource_provider_resources = VCPU,VGPU\nresource_provider_traits = CUSTOM_B,CUSTOM_C\n",
        "nova.conf",
    )
    arguments = ("--candidates", save(answer, "answer.json"), "--config-file", conf)
    (row,) = json.loads(run("weigh", flavor({}), *arguments, "-f", "json").stdout)
    # boring: VCPU 1 - 1/4, VGPU not asked for; 2 traits that nobody asked for: 1/(1+2)
    assert row["resources"] == {"VCPU": 0.75, "VGPU": 0.0}
    assert row["traits"] == {"CUSTOM_B": 0.0, "CUSTOM_C": 0.0}
    assert row["resource_score"] == pytest.approx(0.375)
    assert row["trait_score"] == pytest.approx(1 / 3)


def test_names_that_no_candidate_has_are_said(
    run: Command, flavor: Command, placement_conf: Path, hosts: dict[str, str], save: Command
) -> None:
    conf = save(
        "[filter_scheduler]\nresource_provider_resources = VCPU,MEMORYMB\n"
        "resource_provider_traits = CUSTOM_GOLDD\n",
        "more.conf",
    )
    files = ("--config-file", placement_conf, "--config-file", conf)
    assert [
        line for line in run(*files, "weigh", flavor({})).stderr.splitlines() if "counts" in line
    ] == [
        "[filter_scheduler] resource_provider_resources: MEMORYMB counts for no host;"
        " did you mean MEMORY_MB?",
        "[filter_scheduler] resource_provider_traits: CUSTOM_GOLDD counts for no host",
    ]
    assert len(hosts) == 3


def test_placement_is_asked_where_no_file_is_given(
    run: Command, flavor: Command, placement_conf: Path, hosts: dict[str, str]
) -> None:
    """The hosts have their names."""
    assert len(hosts) == 3
    path = flavor({}, vcpus=2, ram=4096, disk=0)
    rows = json.loads(run("--config-file", placement_conf, "weigh", path, "-f", "json").stdout)
    assert [row["host"] for row in rows] == ["roomy", "nested", "middling"]  # as in the first test
    assert rows[0]["resources"] == {"VCPU": 0.875, "MEMORY_MB": 0.5}  # 1 - 2/16, 1 - 4096/8192
    result = run("--config-file", placement_conf, "weigh", flavor({}, vcpus=32), "-f", "json")
    assert json.loads(result.stdout) == []
    assert "No host has a candidate; `explain` shows why." in result.stderr
    asked = ("weigh", path, "--candidates", "f.json", "--aggregate", "a")
    assert "--aggregate is for a query" in run(*asked, status=2).stderr


def test_soft_traits_count_before_scores(run: Command, flavor: Command, save: Command) -> None:
    """The scores are (1 - 1/8) / 2 and (1 - 1/4) / 2; the disk of the first host is in a pool."""
    uuids = (letter * 8 + "-0000-4000-8000-" + letter * 12 for letter in "abcd")
    roomy, small, fast, pool = uuids
    summaries = {
        roomy: summary(roomy, 8, "CUSTOM_PRESSURE_IO"),
        small: summary(small, 4),
        fast: summary(fast, 4),
        pool: {
            **summary(pool, 1, "CUSTOM_SSD", "MISC_SHARES_VIA_AGGREGATE"),
            "resources": {"DISK_GB": {"capacity": 100, "used": 0}},
        },
    }
    disk = {fast: {"resources": {"VCPU": 1}}, pool: {"resources": {"DISK_GB": 1}}}
    requests = [{"allocations": disk, "mappings": {"": [fast, pool]}}]
    answer = save(
        {"allocation_requests": requests, "provider_summaries": summaries}, "answer.json"
    )
    conf = "[filter_scheduler]\nresource_provider_avoided_traits = CUSTOM_PRESSURE_*"
    arguments = ("--candidates", answer, "--config-file", save(conf, "nova.conf"), "-f", "json")
    path = flavor({"trait:CUSTOM_SSD": "preferred:2"})
    rows = json.loads(run("weigh", path, *arguments).stdout)
    assert [(row["host"], row["soft_traits"]) for row in rows] == [
        (fast, {"CUSTOM_SSD": 2.0}),
        (small, {}),
        (roomy, {"CUSTOM_PRESSURE_IO": -1.0}),
    ]
