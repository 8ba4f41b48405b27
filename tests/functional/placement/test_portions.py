"""More and less of what a server holds, on a real Placement that loses answers."""

from collections.abc import Callable

import pytest

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import (
    ConsumerMismatch,
    GenerationConflict,
    InsufficientCapacity,
    PlacementUnavailable,
)
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.placement.allocations import claim, release
from cpu_tiers.tools.placement.client import PlacementClient
from tests.driver_operations import add_portion, delete, move, roll_back

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
MIGRATION = "b0a4ea0d-5f42-4b2e-8a8f-3e5f0c4a7c33"
EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"


@pytest.fixture
def host(client: PlacementClient) -> str:
    uuid = client.create_provider("compute1").uuid
    by_class = {"VCPU": Inventory(total=8, max_unit=8)}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


@pytest.fixture
def nic(client: PlacementClient, host: str) -> str:
    """A device with 3000 kilobit per second in each direction."""
    uuid = client.create_provider("compute1:agent:nic", parent_uuid=host).uuid
    by_class = dict.fromkeys([EGRESS, INGRESS], Inventory(total=3000, max_unit=3000))
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


@pytest.fixture
def server(client: PlacementClient, host: str, nic: str) -> Callable[[], Consumer]:
    """A server with two ports of 1000 each; returns what it holds now."""
    allocations = {host: {"VCPU": 2}, nic: {EGRESS: 2000, INGRESS: 2000}}
    request = AllocationRequest(allocations=allocations)
    claim(client, SERVER, request, project_id="project", user_id="user")
    return lambda: client.consumer(SERVER)


Server = Callable[[], Consumer]


def test_detach_frees_the_ports_part_alone(
    client: PlacementClient, host: str, nic: str, server: Server
) -> None:
    before = server()
    release(client, SERVER, Portion.by_id({nic: {EGRESS: 1000, INGRESS: 1000}}))
    after = server()
    assert after.allocations == {host: {"VCPU": 2}, nic: {EGRESS: 1000, INGRESS: 1000}}
    assert (after.project_id, after.user_id, after.consumer_type) == (
        before.project_id,
        before.user_id,
        before.consumer_type,
    )
    release(client, SERVER, Portion.by_id({nic: {EGRESS: 1000, INGRESS: 500}}))
    assert server().allocations == {host: {"VCPU": 2}, nic: {INGRESS: 500}}
    release(client, SERVER, Portion.by_id({nic: {INGRESS: 500}}))
    assert server().allocations == {host: {"VCPU": 2}}
    assert client.usages(nic) == {EGRESS: 0, INGRESS: 0}


@pytest.mark.parametrize(
    "fault", ["answer lost", "silence", "closed", "HTML 503", "JSON 503", "JSON 409"]
)
def test_a_port_is_freed_once(
    client: PlacementClient,
    host: str,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    fault: str,
) -> None:
    faults += [("POST /allocations", fault)] * 2
    release(client, SERVER, Portion.by_id({nic: {EGRESS: 1000, INGRESS: 1000}}))
    # After a lost answer a read tells that nothing is left to do.
    assert len(faults) == (fault == "answer lost")
    assert server().allocations == {host: {"VCPU": 2}, nic: {EGRESS: 1000, INGRESS: 1000}}


@pytest.mark.parametrize("fault", ["answer lost", "closed"])
def test_the_last_of_a_consumer_is_freed_once(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    request = AllocationRequest(allocations={host: {"VCPU": 2}})
    claim(client, SERVER, request, project_id="project", user_id="user")
    faults.append(("POST /allocations", fault))
    release(client, SERVER, Portion.by_id({host: {"VCPU": 2}}))
    assert client.consumer(SERVER).allocations == {}


def test_two_detaches_at_once_free_both_ports(
    client: PlacementClient, nic: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other port asks for the same: what we wanted to write is there, but not from us."""
    portion = Portion.by_id({nic: {EGRESS: 1000, INGRESS: 1000}})
    honest = client.set_consumers

    def overtaken(*consumers: Consumer) -> None:
        monkeypatch.undo()
        release(client, SERVER, portion)
        honest(*consumers)

    monkeypatch.setattr(client, "set_consumers", overtaken)
    release(client, SERVER, portion)
    assert nic not in server().allocations


def test_amounts_that_are_not_allocated_are_not_freed(
    client: PlacementClient, host: str, nic: str, server: Server, seen: list[str]
) -> None:
    before = server().allocations
    with pytest.raises(ConsumerMismatch) as error:
        release(client, SERVER, Portion.by_id({nic: {EGRESS: 2001, "VCPU": 1}, host: {"VCPU": 1}}))
    assert f"does not hold 2001 of {EGRESS} on {nic}, 1 of VCPU on {nic}" in str(error.value)
    assert server().allocations == before
    assert not [line for line in seen if line == "POST /allocations"][1:]  # but for the claim


def test_a_server_that_is_gone_holds_nothing(client: PlacementClient, nic: str) -> None:
    with pytest.raises(ConsumerMismatch, match="does not hold anything"):
        release(client, SERVER, Portion.by_id({nic: {EGRESS: 1}}))


def test_nothing_is_freed_without_a_write(client: PlacementClient, seen: list[str]) -> None:
    release(client, SERVER, Portion.by_id({}))
    assert seen == []


def test_add(client: PlacementClient, host: str, nic: str, server: Server) -> None:
    add_portion(client, SERVER, Portion.by_id({nic: {EGRESS: 500}, host: {"VCPU": 1}}))
    assert server().allocations == {host: {"VCPU": 3}, nic: {EGRESS: 2500, INGRESS: 2000}}
    with pytest.raises(InsufficientCapacity):
        add_portion(client, SERVER, Portion.by_id({nic: {EGRESS: 501}}))  # 2500 + 501 > 3000
    assert server().allocations[ProviderId(nic)] == {EGRESS: 2500, INGRESS: 2000}


@pytest.mark.parametrize("fault", ["answer lost", "silence", "closed", "JSON 409"])
def test_a_portion_is_added_once(
    client: PlacementClient,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    fault: str,
) -> None:
    faults += [("POST /allocations", fault)] * 2
    add_portion(client, SERVER, Portion.by_id({nic: {EGRESS: 100}}))
    assert server().allocations[ProviderId(nic)] == {EGRESS: 2100, INGRESS: 2000}


def after_the_first_send(
    client: PlacementClient, monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]
) -> None:
    """Have somebody else write when our first request is over, and before we look again."""
    honest = client.set_consumers

    def followed(*consumers: Consumer) -> None:
        monkeypatch.undo()
        try:
            honest(*consumers)
        finally:
            write()

    monkeypatch.setattr(client, "set_consumers", followed)


def write_anew(client: PlacementClient) -> None:
    client.set_consumers(client.consumer(SERVER))


@pytest.mark.parametrize("change", [add_portion, release])
def test_an_answer_lost_during_a_concurrent_write_is_not_guessed(
    client: PlacementClient,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[..., None],
) -> None:
    """Ours was carried out, and another write leaves it: of two writes one may be ours."""
    faults.append(("POST /allocations", "answer lost"))
    after_the_first_send(client, monkeypatch, lambda: write_anew(client))
    with pytest.raises(ConsumerMismatch, match="was lost, and others have written it since"):
        change(client, SERVER, Portion.by_id({nic: {EGRESS: 100}}))
    once = 2100 if change is add_portion else 1900
    assert server().allocations[ProviderId(nic)] == {EGRESS: once, INGRESS: 2000}


def test_a_portion_is_not_freed_of_a_later_claim(
    client: PlacementClient,
    host: str,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours was carried out, and the server claimed for anew: its generation is 1 again."""
    assert server().generation == 1
    bandwidth = AllocationRequest(allocations={host: {"VCPU": 2}, nic: {EGRESS: 500}})

    def claim_anew() -> None:
        delete(client, SERVER)
        claim(client, SERVER, bandwidth, project_id="project", user_id="user")

    faults.append(("POST /allocations", "closed"))
    after_the_first_send(client, monkeypatch, claim_anew)
    with pytest.raises(ConsumerMismatch, match="was lost, and others have written it since"):
        release(client, SERVER, Portion.by_id({nic: {EGRESS: 100}}))
    assert server().generation == 1
    assert server().allocations == {host: {"VCPU": 2}, nic: {EGRESS: 500}}


def test_a_concurrent_write_is_not_taken_for_the_own_write(
    client: PlacementClient,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours did not arrive, then it was refused, as another port was given its part."""
    honest = client.set_consumers

    def overtaken(*consumers: Consumer) -> None:
        monkeypatch.undo()
        add_portion(client, SERVER, Portion.by_id({nic: {INGRESS: 7}}))
        faults.append(("POST /allocations", "closed"))
        honest(*consumers)

    monkeypatch.setattr(client, "set_consumers", overtaken)
    add_portion(client, SERVER, Portion.by_id({nic: {EGRESS: 100}}))
    assert server().allocations[ProviderId(nic)] == {EGRESS: 2100, INGRESS: 2007}


def test_a_new_consumer_is_claimed_for_and_not_added_to(client: PlacementClient, nic: str) -> None:
    with pytest.raises(ConsumerMismatch, match="does not hold anything"):
        add_portion(client, SERVER, Portion.by_id({nic: {EGRESS: 1}}))


@pytest.mark.parametrize(
    ("fault", "kind"), [("JSON 409", GenerationConflict), ("HTML 503", PlacementUnavailable)]
)
def test_after_the_last_attempt_the_release_fails(
    client: PlacementClient,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    fault: str,
    kind: type[Exception],
) -> None:
    before = server().allocations
    faults += [("POST /allocations", fault)] * 4
    with pytest.raises(kind):
        release(client, SERVER, Portion.by_id({nic: {EGRESS: 1000}}))
    assert server().allocations == before


@pytest.mark.parametrize("fault", [None, "answer lost", "silence", "closed", "JSON 409"])
def test_a_revert_gives_back_the_source_and_frees_the_destination(
    client: PlacementClient,
    nic: str,
    server: Server,
    faults: list[tuple[str, str]],
    fault: str | None,
) -> None:
    before = server().allocations
    move(client, SERVER, MIGRATION)
    other = client.create_provider("compute2").uuid
    by_class = {"VCPU": Inventory(total=8, max_unit=8)}
    client.set_inventories(other, Inventories(generation=0, by_class=by_class))
    request = AllocationRequest(allocations={other: {"VCPU": 4}})
    claim(client, SERVER, request, project_id="project", user_id="user")
    if fault:
        faults.append(("POST /allocations", fault))
    roll_back(client, SERVER, MIGRATION)
    assert server().allocations == before
    assert server().consumer_type == "INSTANCE"
    assert client.consumer(MIGRATION).allocations == {}
    assert client.usages(other) == {"VCPU": 0}


def test_a_roll_back_before_the_destination_was_claimed(
    client: PlacementClient, server: Server
) -> None:
    before = server().allocations
    move(client, SERVER, MIGRATION)
    roll_back(client, SERVER, MIGRATION)
    assert server().allocations == before


def test_a_migration_that_holds_nothing_cannot_be_rolled_back(
    client: PlacementClient, server: Server
) -> None:
    before = server().allocations
    with pytest.raises(ConsumerMismatch, match="holds no allocations to move"):
        roll_back(client, SERVER, MIGRATION)
    assert server().allocations == before
    assert delete(client, SERVER)
