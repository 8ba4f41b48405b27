"""``reshape apply`` of a saved plan, against a real Placement over HTTP."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.plan_file import digest_of

SERVER = "1a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
HELD = {"VCPU": 2, "MEMORY_MB": 1024}
GOES_TO = {"compute1_NUMA1": {"VCPU": 2}, "compute1_NUMA1_PAGES_4": {"MEMORY_MB": 1024}}
NUMA = "[compute]\nenable_numa_reporting_to_placement = true\n"
MOVE = (
    "compute1: allocations of server web on compute1 ->"
    " 2 VCPU on compute1_NUMA1; 1024 MEMORY_MB on compute1_NUMA1_PAGES_4"
)


def plan(**changes: Any) -> dict[str, Any]:
    return {"name": "server web", "held": HELD, "resources": GOES_TO} | changes


@pytest.fixture
def apply(
    run: Callable[..., Any], save: Callable[..., str], capabilities: str, placement_conf: Path
) -> Callable[..., Any]:
    """Run ``reshape apply`` of a plan for these consumers."""

    def apply(consumers: Mapping[str, Any], conf: str = NUMA, *, status: int = 0) -> Any:
        digest = digest_of("compute1", consumers)
        document = save(
            {"host": "compute1", "consumers": consumers, "digest": digest}, "plan.json"
        )
        return run(
            *("reshape", "apply", document, "--capabilities", capabilities, "-f", "json"),
            *("--config-file", placement_conf, "--config-file", save(conf, "more.conf")),
            status=status,
        )

    return apply


@pytest.fixture
def root(
    run: Callable[..., Any], capabilities: str, placement_conf: Path, client: PlacementClient
) -> str:
    """A host that is not NUMA-aware, with a server; its uuid."""
    arguments = ("--capabilities", capabilities, "--hostname", "compute1", "--disk-gb", "9")
    run("inventory", "sync", *arguments, "--config-file", placement_conf)
    provider = client.find_provider("compute1")
    assert provider is not None
    request = AllocationRequest(allocations={provider.uuid: {**HELD, "DISK_GB": 5}})
    claim(client, SERVER, request, project_id="p", user_id="u")
    return provider.uuid


def held(client: PlacementClient) -> dict[str, Mapping[str, int]]:
    found = client.consumer(SERVER).allocations
    return {client.provider(uuid).name: resources for uuid, resources in found.items()}


def writes(seen: list[str]) -> list[str]:
    return [line for line in seen if not line.startswith("GET ")]


def test_a_plan_is_carried_out_once(
    apply: Callable[..., Any], root: str, client: PlacementClient, seen: list[str]
) -> None:
    changes = json.loads(apply({SERVER: plan()}).stdout)
    assert [c["provider"] for c in changes if c["what"] == "provider"] == [
        *("compute1_NUMA0", "compute1_NUMA1"),
        *("compute1_NUMA0_PAGES_4", "compute1_NUMA1_PAGES_4"),
    ]
    assert held(client) == {"compute1": {"DISK_GB": 5, "CUSTOM_NUMA_SERVER": 1}, **GOES_TO}
    assert client.inventories(root).by_class.keys() == {"DISK_GB", "CUSTOM_NUMA_SERVER"}
    assert writes(seen)[-1] == "POST /reshaper"
    seen.clear()
    second = apply({SERVER: plan()})
    assert json.loads(second.stdout) == []
    assert second.stderr == "Placement is up to date: nothing was changed.\n"
    assert writes(seen) == []


def test_servers_that_hold_something_else(
    apply: Callable[..., Any], root: str, client: PlacementClient, seen: list[str]
) -> None:
    other = "2a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
    request = AllocationRequest(allocations={root: {"VCPU": 1}})
    claim(client, other, request, project_id="p", user_id="u")
    seen.clear()
    wrong = plan(
        held={"VCPU": 1, "MEMORY_MB": 1024},
        resources=GOES_TO | {"compute1_NUMA1": {"VCPU": 1}},
    )
    assert apply({SERVER: wrong}, status=1).stderr == (
        "server web: holds 1024 MEMORY_MB, 2 VCPU, but 1024 MEMORY_MB, 1 VCPU when the plan was"
        " made; make the plan again\n"
        f"consumer {other}: is not in the plan; make the plan again\n"
    )
    assert writes(seen) == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("JSON 503", f"perhaps written: {MOVE}", id="Placement goes down"),
        pytest.param("answer lost", f"perhaps written: {MOVE}", id="no answer comes"),
        pytest.param("JSON 403", f"not written: {MOVE}", id="without the role service"),
    ],
)
def test_changes_written_and_not_written(
    apply: Callable[..., Any],
    root: str,
    client: PlacementClient,
    faults: list[tuple[str, str]],
    fault: str,
    said: str,
) -> None:
    faults += [("POST /reshaper", "JSON 503" if fault == "answer lost" else fault)] * 4
    if fault == "answer lost":
        faults[0] = ("POST /reshaper", fault)
    error = apply({SERVER: plan()}, status=1).stderr
    assert "POST /reshaper" in error
    assert "\nwritten: compute1_NUMA0: provider absent -> under compute1" in error
    assert said in error
    faults.clear()
    apply({SERVER: plan()})  # finishes it
    assert held(client) == {"compute1": {"DISK_GB": 5, "CUSTOM_NUMA_SERVER": 1}, **GOES_TO}


def test_a_host_that_placement_does_not_know(
    apply: Callable[..., Any], url: str, seen: list[str]
) -> None:
    error = apply({SERVER: plan()}, status=1).stderr
    assert error.startswith("Placement has no provider compute1, the host of the plan")
    assert writes(seen) == []


@pytest.mark.parametrize(
    ("conf", "consumers", "said"),
    [
        (NUMA, {SERVER: 7}, f"plan.json, consumer {SERVER}: not as a plan is written"),
        ("[DEFAULT]\n", {}, "nova.conf, [compute] enable_numa_reporting_to_placement: not true"),
    ],
)
def test_bad_input(
    apply: Callable[..., Any], seen: list[str], conf: str, consumers: Any, said: str
) -> None:
    assert said in apply(consumers, conf, status=1).stderr
    assert seen == []
