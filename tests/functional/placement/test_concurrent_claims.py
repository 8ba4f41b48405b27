"""Concurrent claims against a real Placement, which serves requests one by one and so holds."""

import threading
from dataclasses import replace

import pytest

from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement import concurrent_claims
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.concurrent_claims import (
    RESOURCE_CLASS,
    ClaimsResult,
    ConcurrentClaims,
)


def test_a_placement_that_holds(client: PlacementClient, seen: list[str]) -> None:
    claims = ConcurrentClaims(client=client, claimers=4, claim=client.set_consumers)
    # 4 claims, and 4 // 3 + 1 = 2 of them fit
    result = ClaimsResult(rounds=2, oversold_rounds=0, capacity=2, most_granted=2)
    assert claims.run(2) == result
    assert seen.count("POST /allocations") >= 8
    assert client.providers() == ()


def test_a_placement_that_oversells(client: PlacementClient) -> None:
    """An operator raises the capacity behind the back of the check, so that all claims fit."""
    one = threading.Lock()

    def claim(consumer: Consumer) -> None:
        (provider,) = consumer.allocations
        with one:
            present = client.inventories(provider)
            grown = replace(present.by_class[RESOURCE_CLASS], total=9)
            client.set_inventories(provider, replace(present, by_class={RESOURCE_CLASS: grown}))
            client.set_consumers(consumer)

    result = ConcurrentClaims(client=client, claimers=4, claim=claim).run(1)
    assert result == ClaimsResult(rounds=1, oversold_rounds=1, capacity=2, most_granted=4)
    assert client.providers() == ()


def test_claims_that_fail_give_no_result(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    faults += [("POST /allocations", "JSON 403")] * 2
    with pytest.raises(PlacementError, match=r"at most 0 of 1 units.*HTTP 403"):
        ConcurrentClaims(client=client, claimers=2, claim=client.set_consumers).run(1)
    assert client.providers() == ()


@pytest.mark.parametrize("request_line", ["POST /resource_providers", "DELETE /allocations"])
def test_a_lost_answer_leaves_nothing_behind(
    client: PlacementClient, faults: list[tuple[str, str]], request_line: str
) -> None:
    faults.append((request_line, "answer lost"))
    assert (
        ConcurrentClaims(client=client, claimers=2, claim=client.set_consumers).run(1).left_behind
        == 0
    )
    assert client.providers() == ()


def test_a_provider_that_cannot_be_deleted_is_named(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    faults.append(("DELETE /resource_providers", "JSON 403"))
    started = ConcurrentClaims(client=client, claimers=2, claim=client.set_consumers)
    assert started.run(1).left_behind == 1
    assert started.left_behind == [provider.name for provider in client.providers()]


def test_ctrl_c_during_the_claims(
    client: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent_claims, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ConcurrentClaims(client=client, claimers=2, claim=client.set_consumers).run(1)
    assert client.providers() == ()
