"""What the client writes is given back if a look finds an excess, which a canned answer plays."""

from dataclasses import replace

import pytest

from cpu_tiers import oversold
from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Excess
from cpu_tiers.placement.errors import OversoldClaim
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.placement import allocations, conflicts
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from tests import driver_operations

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
EXCESS = ("GET .*/usages", "9 NUMA_THREAD")
"""A look that finds 9 allocated units of 8."""

Faults = list[tuple[str, str]]


@pytest.fixture
def host(client: PlacementClient, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a host of 8 units, for a client that gives back."""
    monkeypatch.setattr(oversold, "LONGEST_PAUSE", 0.0)
    client.gives_back_oversold = True
    uuid = client.create_provider("compute1").uuid
    by_class = {"NUMA_THREAD": Inventory(total=8, max_unit=8)}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def claim_two(client: PlacementClient, host: str) -> None:
    request = AllocationRequest(allocations={host: {"NUMA_THREAD": 2}})
    claim(client, SERVER, request, project_id="p", user_id="u")


def held(client: PlacementClient, host: str) -> int:
    return client.consumer(SERVER).allocations.total.get("NUMA_THREAD", 0)


@pytest.mark.parametrize(
    ("looks", "writes"),
    [
        pytest.param(0, 1, id="no excess"),
        pytest.param(1, 1, id="an excess that ends meanwhile"),
        pytest.param(2, 3, id="an excess: given back, and claimed again"),
    ],
)
def test_a_claim(
    client: PlacementClient, host: str, faults: Faults, seen: list[str], looks: int, writes: int
) -> None:
    faults += [EXCESS] * looks
    claim_two(client, host)
    assert held(client, host) == 2
    assert seen.count("POST /allocations") == writes
    assert faults == []


def test_an_excess_for_ever(client: PlacementClient, host: str, faults: Faults) -> None:
    claim_two(client, host)
    faults += [EXCESS] * 99
    with pytest.raises(OversoldClaim, match=r"9 of 8 NUMA_THREAD .* placement check"):
        driver_operations.add_portion(client, SERVER, Portion.by_id({host: {"NUMA_THREAD": 1}}))
    assert held(client, host) == 2


def test_off_is_off(client: PlacementClient, host: str, seen: list[str]) -> None:
    client.gives_back_oversold = False
    seen.clear()
    claim_two(client, host)
    assert seen == [f"GET /allocations/{SERVER}", "POST /allocations"]
    client.gives_back_oversold = True
    seen.clear()
    allocations.release(client, SERVER, Portion.by_id({host: {"NUMA_THREAD": 1}}))
    assert seen == [f"GET /allocations/{SERVER}", "POST /allocations"]


def test_a_failed_look_leaves_the_claim(
    client: PlacementClient, host: str, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    faults.append(("GET .*/usages", "JSON 403"))
    claim_two(client, host)
    assert held(client, host) == 2
    assert f"whether the claim of {SERVER} exceeds the capacity" in caplog.text


@pytest.mark.parametrize(
    ("fault", "stays"),
    [
        pytest.param([("POST /allocations", "answer lost")], False, id="the answer is lost"),
        pytest.param([("POST /allocations", "JSON 409")], False, id="another client writes"),
        pytest.param([("POST /allocations", "JSON 403")] * 9, True, id="refused for ever"),
        pytest.param([("GET /allocations/", "JSON 403")] * 9, True, id="unreadable for ever"),
    ],
)
def test_a_fault_while_a_claim_is_given_back(
    client: PlacementClient,
    host: str,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Faults,
    stays: bool,
) -> None:
    excess = Excess(host, "NUMA_THREAD", 9, 8)

    def look(*_: object) -> list[Excess]:
        faults[:] = fault
        return [excess]

    monkeypatch.setattr(conflicts, "_look", look)
    allocations = Portion.by_id({host: {"NUMA_THREAD": 2}})
    before = Consumer(uuid=SERVER, project_id="p", user_id="u")
    change = (before, replace(before, allocations=allocations))
    if stays:
        conflicts.set_consumers(client, change)
        assert f"of {SERVER} may not be given back" in caplog.text
    else:
        with pytest.raises(OversoldClaim):
            conflicts.set_consumers(client, change)
    faults.clear()
    assert held(client, host) == (2 if stays else 0)
