"""``inventory sync`` against a real Placement over HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient

Command = Callable[..., Any]


@pytest.fixture
def sync(
    run: Command, save: Command, capabilities: str, placement_conf: Path
) -> Callable[..., Any]:
    """Run ``inventory sync`` with more nova.conf; shares are reported."""

    def sync(conf: str = "", *arguments: str, status: int = 0) -> Any:
        text = f"[libvirt]\nreport_vcpu_shares = true\n{conf}"
        return run(
            *("inventory", "sync", "--capabilities", capabilities, "--hostname", "compute1"),
            *("--config-file", placement_conf, "--config-file", save(text, "more.conf")),
            *("--disk-gb", "500", "-f", "json", *arguments),
            status=status,
        )

    return sync


def test_a_second_run_changes_nothing(
    sync: Command, client: PlacementClient, seen: list[str]
) -> None:
    what = [change["what"] for change in json.loads(sync().stdout)]
    assert f"resource class {VCPU_SHARES}" in what
    assert {"provider", "VCPU", "MEMORY_MB", "DISK_GB", VCPU_SHARES} <= set(what)
    seen.clear()
    second = sync()
    assert json.loads(second.stdout) == []
    assert second.stderr == "Placement is up to date: nothing was changed.\n"
    assert seen != []
    assert [line for line in seen if not line.startswith("GET ")] == []


def test_changes_are_listed(sync: Command) -> None:
    sync()
    changes = json.loads(sync("[DEFAULT]\nreserved_host_cpus = 2\n").stdout)
    # 2 CPUs x 100 shares
    assert {(c["what"], c["before"], c["after"]) for c in changes} == {
        ("VCPU reserved", "0", "2"),
        (f"{VCPU_SHARES} reserved", "0", "200"),
    }


def test_a_total_below_the_allocated_amount_is_named(
    sync: Command, client: PlacementClient
) -> None:
    """64 CPUs become 4, at a ratio of 1, and a server has 5 of them."""
    ratio = "[DEFAULT]\ncpu_allocation_ratio = 1.0\n"
    assert sync(ratio).stderr == ""
    provider = client.find_provider("compute1")
    assert provider
    claim(
        client,
        str(uuid4()),
        AllocationRequest(allocations={provider.uuid: {"VCPU": 5}}),
        project_id="p",
        user_id="u",
    )
    result = sync(f"{ratio}[compute]\ncpu_shared_set = 0-3\n")
    assert "VCPU total" in [change["what"] for change in json.loads(result.stdout)]
    assert (
        "More is allocated than the capacity: 5 of 4 VCPU of provider compute1." in result.stderr
    )


@pytest.mark.parametrize(
    ("other", "is_alike"),
    [
        ("compute1.example.org", True),
        ("COMPUTE1", True),
        ("compute10", False),
        ("compute2.example.org", False),
    ],
)
def test_a_host_with_a_similar_name(
    sync: Command, client: PlacementClient, seen: list[str], other: str, is_alike: bool
) -> None:
    client.create_provider(other)
    seen.clear()
    result = sync(status=int(is_alike))
    assert (
        f"has {other}: if this is the same host, give --hostname {other}" in result.stderr
    ) == (is_alike)
    if is_alike:
        assert [line for line in seen if not line.startswith("GET ")] == []
        client.create_provider("compute1")  # as the message says
        sync()


def test_turning_reporting_off_is_refused(sync: Command, seen: list[str]) -> None:
    sync()
    seen.clear()
    result = sync("report_vcpu_shares = false\n", status=1)
    assert "report_vcpu_shares" in result.stderr
    assert [line for line in seen if not line.startswith("GET ")] == []


NUMA = "[compute]\nenable_numa_reporting_to_placement = true\n"


def test_numa_nodes(sync: Command) -> None:
    created = [c["provider"] for c in json.loads(sync(NUMA).stdout) if c["what"] == "provider"]
    # two cells, whose capabilities name no page sizes
    nodes = [f"compute1_NUMA{cell}" for cell in (0, 1)]
    assert created == ["compute1", *nodes, *(f"{node}_PAGES_4" for node in nodes)]
    assert json.loads(sync(NUMA).stdout) == []


def test_flavors_are_held_against_the_pages_that_hosts_report(
    run: Command, sync: Command, flavor: Command, placement_conf: Path
) -> None:
    def check(size: str, *arguments: str, status: int = 0) -> Any:
        path = flavor({"hw:mem_page_size": size})
        command = ("flavor", "check", path, "--config-file", placement_conf, "-f", "json")
        return run(*command, *arguments, status=status)

    assert "No host reports its page sizes" in check("1GB", "--hosts").stderr
    sync(NUMA)
    check("1GB")  # Placement is not asked unless that is asked for
    assert json.loads(check("4KB", "--hosts").stdout) == []
    (row,) = json.loads(check("1GB", "--hosts", status=3).stdout)
    assert row["where"] == "flavor gold, extra spec hw:mem_page_size"
    assert (
        row["given"]
        == "asks for pages of 1048576 kB, and no host that reports its NUMA nodes has such pages"
    )
    assert row["allowed"] == "these hosts have pages of 4 kB"


def test_going_back_from_numa_nodes_is_refused(sync: Command, seen: list[str]) -> None:
    sync(NUMA)
    seen.clear()
    result = sync(status=1)
    assert "Set [compute] enable_numa_reporting_to_placement = true" in result.stderr
    assert [line for line in seen if not line.startswith("GET ")] == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("HTML 200", "JSON"),
        ("JSON list", "JSON"),
    ],
)
def test_answers_that_are_no_answers(
    sync: Command, faults: list[tuple[str, str]], fault: str, message: str
) -> None:
    faults.append(("GET /resource_providers", fault))
    assert message in sync(status=1).stderr


@pytest.mark.parametrize("fault", ["JSON 503", "HTML 503", "closed", "silence"])
def test_a_placement_that_stays_away(
    sync: Command, faults: list[tuple[str, str]], fault: str
) -> None:
    faults += [("PUT /resource_providers", fault)] * 9
    stderr = sync(status=1).stderr
    assert "PUT /resource_providers" in stderr
    assert "provider" in stderr.partition("PUT ")[2]


def test_a_placement_that_comes_back(sync: Command, faults: list[tuple[str, str]]) -> None:
    faults += [("PUT ", "JSON 503"), ("PUT ", "closed"), ("PUT ", "JSON 409")]
    sync()
    assert faults == []
    assert json.loads(sync().stdout) == []


def test_embedded(run: Command, capabilities: str) -> None:
    arguments = ("--capabilities", capabilities, "--hostname", "h", "--placement", "embedded")
    result = run("inventory", "sync", *arguments, "--disk-gb", "0", "-f", "json")
    assert {"provider", "VCPU", "MEMORY_MB"} <= {c["what"] for c in json.loads(result.stdout)}
