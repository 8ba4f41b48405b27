"""The shares of a host, as a real Placement has them."""

from dataclasses import replace
from fractions import Fraction

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.model.providers import Excess
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.inventories import read_excesses, read_shares
from cpu_tiers.tools.tiers.sold import Sale

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"


def report(client: PlacementClient, name: str, parent: str | None = None, **totals: int) -> str:
    uuid = client.create_provider(name, parent_uuid=parent).uuid
    by_class = {name: Inventory(total=n, max_unit=n) for name, n in totals.items()}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def hold(client: PlacementClient, uuid: str, **held: dict[str, int]) -> None:
    allocations = Portion.by_id({p.replace("_", "-"): amounts for p, amounts in held.items()})
    client.set_consumers(
        Consumer(uuid=uuid, allocations=allocations, project_id="project", user_id="user")
    )


def test_shares_of_all_providers_of_a_host(client: PlacementClient) -> None:
    client.ensure_names([VCPU_SHARES])
    root = report(client, "compute1", VCPU=8)
    cells = [report(client, f"compute1_{i}", root, **{VCPU_SHARES: 400}) for i in (0, 1)]
    hold(client, SERVER, **{cells[0]: {VCPU_SHARES: 100}, cells[1]: {VCPU_SHARES: 50}})
    hold(client, OTHER, **{root: {VCPU: 1}})
    found = read_shares(client, "compute1")
    assert (found.capacity, dict(found.held)) == (800, {SERVER: 150, OTHER: 0})
    assert found.sale == Sale(cpus=8, shares=Fraction(800))


def test_a_host_that_reports_none(client: PlacementClient) -> None:
    root = report(client, "compute1", VCPU=8)
    for consumer in (SERVER, OTHER):
        hold(client, consumer, **{root: {VCPU: 4}})
    assert read_shares(client, "compute1").excesses == read_excesses(client) == ()
    smaller = replace(client.inventories(root), by_class={VCPU: Inventory(total=7, max_unit=7)})
    client.set_inventories(root, smaller)
    shares = read_shares(client, "compute1")
    assert (shares.capacity, shares.sale) == (None, None)
    assert shares.excesses == read_excesses(client) == (Excess("compute1", VCPU, 8, 7),)


def test_an_unknown_host(client: PlacementClient) -> None:
    with pytest.raises(InvalidInput, match=r"host compute9: Placement has no provider .*--host"):
        read_shares(client, "compute9")
