"""Claim, move and delete on a real Placement."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.accounting.holdings import ConsumerId, Holdings, Portion, ProviderName
from cpu_tiers.accounting.missing_shares import Addition, Owner, Shortfall
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import (
    ConsumerMismatch,
    DataChanged,
    GenerationConflict,
    InsufficientCapacity,
    PlacementAnswerInvalid,
    PlacementRefused,
)
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.allocations import add, claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.exchange import Transport
from cpu_tiers.tools.placement.sync import PlacementHost, read_host
from tests.driver_operations import delete, move

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"
MIGRATION = "b0a4ea0d-5f42-4b2e-8a8f-3e5f0c4a7c33"
NOBODY = "c3f5d1d8-6f7e-4e39-9f4c-4d4e0a1b2c44"


@pytest.fixture
def host(client: PlacementClient) -> str:
    """A host with 8 VCPU."""
    uuid = client.create_provider("compute1").uuid
    by_class = {"VCPU": Inventory(total=8, max_unit=8)}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def vcpus(host: str, amount: int) -> AllocationRequest:
    return AllocationRequest(allocations={host: {"VCPU": amount}})


def claim_as(client: PlacementClient, consumer: str, request: AllocationRequest) -> None:
    claim(client, consumer, request, project_id="project", user_id="user")


def test_claim(client: PlacementClient, host: str) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    consumer = client.consumer(SERVER)
    assert consumer.allocations == {host: {"VCPU": 3}}
    assert (consumer.project_id, consumer.user_id) == ("project", "user")
    assert consumer.consumer_type == "INSTANCE"


def test_a_repeated_claim_is_a_single_request(
    client: PlacementClient, host: str, seen: list[str]
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    claim_as(client, SERVER, vcpus(host, 3))
    assert seen.count("POST /allocations") == 1


def test_a_consumer_that_holds_something_else_is_not_overwritten(
    client: PlacementClient, host: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    with pytest.raises(ConsumerMismatch, match=SERVER) as error:
        claim_as(client, SERVER, vcpus(host, 4))
    assert error.value.consumer == SERVER
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 3}}


def test_a_claim_that_does_not_fit_is_refused_at_once(
    client: PlacementClient, host: str, seen: list[str]
) -> None:
    claim_as(client, SERVER, vcpus(host, 6))
    seen.clear()
    with pytest.raises(InsufficientCapacity, match="would exceed the capacity"):
        claim_as(client, OTHER, vcpus(host, 3))  # 6 + 3 > 8
    assert seen.count("POST /allocations") == 1
    assert client.consumer(OTHER).allocations == {}
    claim_as(client, OTHER, vcpus(host, 2))


def test_a_provider_that_is_gone_is_no_matter_of_capacity(client: PlacementClient) -> None:
    with pytest.raises(PlacementRefused, match="does not exist") as error:
        claim_as(client, SERVER, vcpus(NOBODY, 1))
    assert not isinstance(error.value, InsufficientCapacity)


@pytest.mark.parametrize("fault", ["answer lost", "silence", "closed", "HTML 503", "JSON 409"])
def test_a_claim_is_neither_lost_nor_doubled(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    faults += [("POST /allocations", fault)] * 2
    claim_as(client, SERVER, vcpus(host, 5))
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 5}}


def test_move_to_a_migration_and_back(client: PlacementClient, host: str, seen: list[str]) -> None:
    claim_as(client, SERVER, vcpus(host, 5))
    seen.clear()
    move(client, SERVER, MIGRATION)  # 5 + 5 > 8: only both at once will fit
    assert client.consumer(SERVER).allocations == {}
    moved = client.consumer(MIGRATION)
    assert moved.allocations == {host: {"VCPU": 5}}
    assert (moved.project_id, moved.consumer_type) == ("project", "MIGRATION")
    assert seen.count("POST /allocations") == 1

    move(client, MIGRATION, SERVER, consumer_type="INSTANCE")
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 5}}
    assert client.consumer(SERVER).consumer_type == "INSTANCE"
    assert client.consumer(MIGRATION).allocations == {}


@pytest.mark.parametrize("fault", ["answer lost", "silence", "closed", "JSON 409"])
def test_a_move_is_done_once(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 5))
    faults += [("POST /allocations", fault)]
    move(client, SERVER, MIGRATION)
    assert client.consumer(SERVER).allocations == {}
    assert client.consumer(MIGRATION).allocations == {host: {"VCPU": 5}}


def test_nothing_cannot_be_moved(client: PlacementClient, host: str) -> None:
    with pytest.raises(ConsumerMismatch, match="holds no allocations to move"):
        move(client, NOBODY, MIGRATION)


def test_a_move_overwrites_nothing(client: PlacementClient, host: str) -> None:
    claim_as(client, SERVER, vcpus(host, 5))
    claim_as(client, OTHER, vcpus(host, 1))
    with pytest.raises(ConsumerMismatch, match=OTHER):
        move(client, SERVER, OTHER)
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 5}}
    assert client.consumer(OTHER).allocations == {host: {"VCPU": 1}}


def test_delete_tells_whether_allocations_existed(client: PlacementClient, host: str) -> None:
    claim_as(client, SERVER, vcpus(host, 8))
    assert delete(client, SERVER) is True
    assert delete(client, SERVER) is False
    claim_as(client, OTHER, vcpus(host, 8))


class Overtaken:
    """A transport that lets another client go first when it writes for the first time."""

    def __init__(self, transport: Transport, other: Callable[[], object]) -> None:
        self._transport, self._others = transport, [other]

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        if method == "POST" and self._others:
            self._others.pop()()
        return self._transport.request(url, method, **kwargs)


class Interrupted:
    """A transport that has a function send the first write."""

    def __init__(self, transport: Transport, act: Callable[[Callable[[], Any]], Any]) -> None:
        self._transport, self._acts = transport, [act]

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        send = functools.partial(self._transport.request, url, method, **kwargs)
        return self._acts.pop()(send) if method == "POST" and self._acts else send()


def test_of_two_simultaneous_moves_the_second_is_refused(
    client: PlacementClient, host: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 8))
    transport = Overtaken(client._exchange._transport, lambda: move(client, SERVER, MIGRATION))
    with pytest.raises(ConsumerMismatch, match="holds no allocations to move"):
        move(PlacementClient(transport), SERVER, MIGRATION)
    assert client.consumer(MIGRATION).allocations == {host: {"VCPU": 8}}


def test_of_two_simultaneous_deletes_only_the_first_frees(
    client: PlacementClient, host: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 8))
    others: list[bool] = []
    transport = Overtaken(
        client._exchange._transport, lambda: others.append(delete(client, SERVER))
    )
    assert delete(PlacementClient(transport), SERVER) is False
    assert others == [True]


@pytest.mark.parametrize("fault", ["answer lost", "silence", "closed", "JSON 409"])
def test_a_delete_with_a_lost_answer_is_reported_as_done(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 8))
    faults += [("POST /allocations", fault)]
    assert delete(client, SERVER) is True
    assert client.consumer(SERVER).allocations == {}


def test_a_claim_after_a_delete_with_a_lost_answer_stays(
    client: PlacementClient, host: str
) -> None:
    """The new consumer has the generation of the old consumer, 1."""
    claim_as(client, SERVER, vcpus(host, 4))
    before = client.consumer(SERVER).generation

    def delete_and_claim(send: Callable[[], Any]) -> Any:
        assert send().status_code == 204
        claim_as(client, SERVER, vcpus(host, 3))
        raise ConnectFailure("connection reset by peer")

    transport = Interrupted(client._exchange._transport, delete_and_claim)
    with pytest.raises(ConsumerMismatch, match="was lost, and others have written"):
        delete(PlacementClient(transport, retry_policy=RetryPolicy(sleep=lambda _: None)), SERVER)
    assert client.consumer(SERVER).generation == before
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 3}}


def test_after_four_conflicts_the_claim_fails(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    faults += [("POST /allocations", "JSON 409")] * 9
    with pytest.raises(GenerationConflict):
        claim_as(client, SERVER, vcpus(host, 1))
    assert seen.count("POST /allocations") == 4
    assert client.consumer(SERVER).allocations == {}


def test_an_answer_that_is_not_placements_claims_nothing(
    client: PlacementClient, host: str, faults: list[tuple[str, str]]
) -> None:
    faults.append(("POST /allocations", "HTML 200"))
    with pytest.raises(PlacementAnswerInvalid, match="does a proxy answer"):
        claim_as(client, SERVER, vcpus(host, 2))
    assert client.usages(host) == {"VCPU": 0}


def test_usages_are_the_claimed_amounts(client: PlacementClient, host: str) -> None:
    claim_as(client, SERVER, vcpus(host, 2))
    claim_as(client, OTHER, vcpus(host, 3))
    assert client.usages(host) == {"VCPU": 5}


def additions(consumer: str, server: str, host: str = "compute1", **resources: int) -> Addition:
    flavor = Flavor(name="gold", vcpus=1, memory_mb=512)
    owner = Owner(name="web", server=server, flavor=flavor, project_id="p", user_id="u")
    shortfall = Shortfall(consumer=ConsumerId(consumer), owner=owner, resources=resources)
    return Addition(shortfall=shortfall, goes_to=Portion.by_name({host: resources}))


def read(client: PlacementClient, name: str = "compute1") -> PlacementHost:
    found = read_host(client, name)
    assert found is not None
    return found


def test_additions_to_a_consumer_with_and_without_allocations(
    client: PlacementClient, host: str
) -> None:
    give_memory(client, host)
    claim_as(client, SERVER, vcpus(host, 3))
    found = read(client)
    assert found.holdings == {SERVER: {"compute1": {"VCPU": 3}}}
    add(
        client,
        found,
        [additions(SERVER, SERVER, MEMORY_MB=64), additions(OTHER, SERVER, VCPU=1, MEMORY_MB=32)],
    )
    old, new = client.consumer(SERVER), client.consumer(OTHER)
    assert old.allocations == {host: {"VCPU": 3, "MEMORY_MB": 64}}
    assert (old.project_id, old.user_id, old.consumer_type) == ("project", "user", "INSTANCE")
    assert new.allocations == {host: {"VCPU": 1, "MEMORY_MB": 32}}
    assert (new.project_id, new.user_id, new.consumer_type) == ("p", "u", "MIGRATION")


def test_add_is_for_all_or_for_none(client: PlacementClient, host: str) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    with pytest.raises(InsufficientCapacity):
        add(
            client,
            read(client),
            [additions(OTHER, OTHER, VCPU=5), additions(NOBODY, NOBODY, VCPU=1)],
        )
    assert client.allocations(host).keys() == {SERVER}


@pytest.mark.parametrize(
    "believed",
    [
        pytest.param(
            Holdings.by_name({SERVER: {"compute1": {"VCPU": 2}}}), id="the server was resized"
        ),
        pytest.param(Holdings[ProviderName](), id="the server has come"),
    ],
)
def test_an_addition_to_changed_allocations_is_refused(
    client: PlacementClient, host: str, believed: Holdings[ProviderName]
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    with pytest.raises(GenerationConflict, match="web was given other allocations"):
        add(client, replace(read(client), holdings=believed), [additions(SERVER, SERVER, VCPU=1)])
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 3}}


def test_an_addition_to_allocations_on_another_host_is_refused(
    client: PlacementClient, host: str
) -> None:
    client.create_provider("compute2")
    claim_as(client, SERVER, vcpus(host, 3))
    with pytest.raises(GenerationConflict):
        add(client, read(client, "compute2"), [additions(SERVER, SERVER, "compute2", VCPU=1)])
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 3}}


@pytest.mark.parametrize("fault", ["answer lost", "silence", "closed", "HTML 503", "JSON 409"])
def test_an_addition_is_made_once(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    faults += [("POST /allocations", fault)]
    add(
        client,
        read(client),
        [additions(SERVER, SERVER, VCPU=1), additions(OTHER, SERVER, VCPU=2)],
    )
    assert client.consumer(SERVER).allocations == {host: {"VCPU": 4}}
    assert client.consumer(OTHER).allocations == {host: {"VCPU": 2}}


def resize(client: PlacementClient, *, to: str) -> None:
    """Resize SERVER, which has a claim elsewhere then, and the generation 1 as before."""
    move(client, SERVER, MIGRATION)
    claim_as(client, SERVER, vcpus(to, 2))
    assert client.consumer(SERVER).generation == 1


def test_a_server_that_is_resized_after_a_lost_write_keeps_the_claim(
    client: PlacementClient, host: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    assert client.consumer(SERVER).generation == 1
    other = host_like(client, host, "compute2")

    def refuse_and_resize(_: Callable[[], Any]) -> Any:
        resize(client, to=other)
        raise ConnectFailure("connection reset by peer")

    transport = Interrupted(client._exchange._transport, refuse_and_resize)
    healer = PlacementClient(transport, retry_policy=RetryPolicy(sleep=lambda _: None))
    with pytest.raises(DataChanged, match="web was given other allocations"):
        add(healer, read(client), [additions(SERVER, SERVER, VCPU=1)])
    assert client.consumer(SERVER).allocations == {other: {"VCPU": 2}}
    assert client.consumer(MIGRATION).allocations == {host: {"VCPU": 3}}


def test_a_server_that_is_resized_while_allocations_are_read_keeps_the_claim(
    client: PlacementClient, host: str
) -> None:
    claim_as(client, SERVER, vcpus(host, 3))
    claim_as(client, OTHER, vcpus(host, 1))
    other = host_like(client, host, "compute2")

    class Slow(PlacementClient):
        def consumer(self, consumer_uuid: str) -> Consumer:
            if consumer_uuid == OTHER:
                resize(client, to=other)
            return super().consumer(consumer_uuid)

    healer = Slow(client._exchange._transport, retry_policy=client.retry_policy)
    with pytest.raises(DataChanged, match=f"{SERVER} was given other allocations"):
        add(
            healer,
            read(client),
            [additions(SERVER, SERVER, VCPU=1), additions(OTHER, OTHER, VCPU=1)],
        )
    assert client.consumer(SERVER).allocations == {other: {"VCPU": 2}}
    assert client.consumer(OTHER).allocations == {host: {"VCPU": 1}}


def host_like(client: PlacementClient, host: str, name: str) -> str:
    """Create a host with the inventories of another host; return its uuid."""
    provider = client.create_provider(name).uuid
    client.set_inventories(provider, replace(client.inventories(host), generation=0))
    return provider


def give_memory(client: PlacementClient, host: str) -> None:
    found = client.inventories(host)
    memory = {"MEMORY_MB": Inventory(total=1024, max_unit=1024)}
    client.set_inventories(host, replace(found, by_class={**found.by_class, **memory}))
