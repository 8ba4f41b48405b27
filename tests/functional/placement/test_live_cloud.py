"""Reading a cloud that is in use: several requests at a time, changes meanwhile, faults.

The answer is compared with :func:`one_by_one`, which asks for each provider by itself.
"""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.names import SHARING
from cpu_tiers.placement.errors import PlacementRefused
from cpu_tiers.placement.records import Consumer, ListedProvider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement import cloud_reader
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_sold_cloud, read_whole_cloud
from tests.functional.placement.providing import (
    content,
    one_by_one,
    provide,
    put_into_aggregate,
)
from tests.random_clouds.providers import placement_rows
from tests.random_clouds.states import CLASSES, TRAITS, draw_state, write_state

JOBS = [1, 4]
SERVER = "00000000-0000-4000-8000-00000000000{}"


def claim(client: PlacementClient, number: int, *providers: str) -> None:
    """Have a server take a VCPU of each provider."""
    allocations = Portion.by_id({uuid: {"VCPU": 1} for uuid in providers})
    client.set_consumers(
        Consumer(uuid=SERVER.format(number), allocations=allocations, project_id="p", user_id="u")
    )


def once(change: Callable[[], object], at: int) -> Callable[[int, int], None]:
    """Return a progress that makes a change when so many providers are read."""

    def progress(done: int, _: int) -> None:
        if done == at:
            change()

    return progress


@pytest.fixture
def hosts(client: PlacementClient) -> list[str]:
    """Six hosts; the third has a child."""
    uuids = [provide(client, f"host-{n}", ["COMPUTE_NODE"], VCPU=8) for n in range(6)]
    client.create_provider("host-2-child", parent_uuid=uuids[2])
    claim(client, 0, uuids[0], uuids[5])
    return uuids


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_cloud_is_read_as_provider_by_provider(
    client: PlacementClient, jobs: int, seed: int
) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    client.ensure_names(classes=[CLASSES[-1]], traits=custom)
    states = draw_state(random.Random(f"live {seed}"))
    write_state(states)
    with placement_rows() as rows:  # Placement's lists of rows need a time
        for table in ("resource_providers", "inventories", "allocations"):
            rows.execute(f"UPDATE {table} SET created_at = '2026-01-01 00:00:00'")  # noqa: S608
    snapshot = read_whole_cloud(client, jobs=jobs)
    assert len(snapshot.providers) == len(states) > 1
    expected, consumers = one_by_one(client)
    # An aggregate that only children are in is left out: Nova and Neutron make none.
    known = frozenset[str]().union(
        *(p.aggregates for p in expected.values() if p.parent is None or SHARING in p.traits)
    )
    expected = {u: replace(p, aggregates=p.aggregates & known) for u, p in expected.items()}
    assert content(snapshot) == (expected, consumers)


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("read", [read_whole_cloud, read_sold_cloud])
def test_what_changes_after_it_is_read_is_read_again(
    client: PlacementClient,
    hosts: list[str],
    jobs: int,
    read: Callable[..., Snapshot],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The last progress is told when at least five trees are read: host-0 is one of them."""
    with caplog.at_level("INFO"):
        snapshot = read(client, once(lambda: claim(client, 1, hosts[0], hosts[5]), at=6), jobs)
    assert snapshot.consumers[SERVER.format(1)] == {
        hosts[0]: {"VCPU": 1},
        hosts[5]: {"VCPU": 1},
    }
    assert "providers that changed meanwhile, and were read again: 2" in caplog.text
    assert "WARNING" not in caplog.text


def test_traits_and_aggregates_that_change_meanwhile(
    client: PlacementClient, hosts: list[str]
) -> None:
    (child,) = (p.uuid for p in client.providers() if p.parent == hosts[2])

    def change() -> None:
        put_into_aggregate(client, hosts[1], child)
        had = client.traits(child)
        client.set_traits(child, replace(had, names=frozenset({"HW_NUMA_ROOT"})))

    snapshot = read_whole_cloud(client, once(change, at=6))
    assert content(snapshot) == one_by_one(client)


def test_a_cloud_that_always_changes_is_said_to_be_one(
    client: PlacementClient,
    hosts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    listed, lists = client.listed_providers, list[int]()

    def and_claim() -> tuple[ListedProvider, ...]:
        lists.append(len(lists) + 1)
        claim(client, lists[-1], hosts[3])
        return listed()

    monkeypatch.setattr(client, "listed_providers", and_claim)
    snapshot = read_whole_cloud(client)
    assert len(lists) == 1 + cloud_reader.ROUNDS + 1
    assert (
        "providers that changed each time that they were read: 1; run the command again"
        in caplog.text
    )
    # The server of the last list came after the last read.
    servers = {SERVER.format(number) for number in range(1, len(lists))}
    assert servers <= snapshot.consumers.keys()
    assert SERVER.format(lists[-1]) not in snapshot.consumers


@pytest.mark.parametrize("at", [0, 6], ids=["before it is read", "after it is read"])
@pytest.mark.parametrize("jobs", JOBS)
def test_a_provider_that_vanishes_is_left_out_with_its_children(
    client: PlacementClient, hosts: list[str], at: int, jobs: int
) -> None:
    """The children of a deleted provider are deleted before it."""
    (child,) = (p.uuid for p in client.providers() if p.parent == hosts[2])

    def delete() -> None:
        client.delete_provider(child)
        client.delete_provider(hosts[2])

    snapshot = read_whole_cloud(client, once(delete, at), jobs)
    assert content(snapshot) == one_by_one(client)
    assert {p.uuid for p in snapshot.providers} == set(hosts) - {hosts[2]}


def test_a_provider_that_is_new_meanwhile(client: PlacementClient, hosts: list[str]) -> None:
    def add() -> None:
        new = provide(client, "new", ["COMPUTE_NODE", "HW_CPU_X86_AVX2"], VCPU=8)
        put_into_aggregate(client, new, hosts[0])
        claim(client, 1, new)

    snapshot = read_whole_cloud(client, once(add, at=6))
    assert content(snapshot) == one_by_one(client)
    assert "new" in {p.name for p in snapshot.providers}


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("fault", ["JSON 500", "closed", "JSON cut off"])
@pytest.mark.parametrize("kind", ["inventories", "allocations", "aggregates"])
def test_a_fault_in_the_middle_is_repeated(
    client: PlacementClient,
    hosts: list[str],
    faults: list[tuple[str, str]],
    jobs: int,
    fault: str,
    kind: str,
) -> None:
    faults.append((f"GET .*/{hosts[3]}/{kind}", fault))
    snapshot = read_whole_cloud(client, jobs=jobs)
    assert not faults
    assert content(snapshot) == one_by_one(client)


@pytest.mark.parametrize("jobs", JOBS)
def test_a_refusal_in_the_middle_ends_the_reading(
    client: PlacementClient,
    hosts: list[str],
    faults: list[tuple[str, str]],
    seen: list[str],
    jobs: int,
) -> None:
    faults.append((f"GET .*/{hosts[0]}/inventories", "JSON 403"))
    with pytest.raises(PlacementRefused, match="policy does not allow it"):
        read_whole_cloud(client, jobs=jobs)
    sent = len(seen)
    client.find_provider("host-0")
    assert len(seen) == sent + 1  # no thread goes on


def test_a_slow_answer_keeps_only_its_own_host_waiting(
    client: PlacementClient,
    hosts: list[str],
    faults: list[tuple[str, str]],
    seen: list[str],
) -> None:
    last = f"GET /resource_providers/{hosts[5]}/allocations"
    faults.append((f"GET .*/{hosts[0]}/inventories", f"after {last}"))
    seen.clear()
    snapshot = read_whole_cloud(client, jobs=2)
    assert seen.index(last) < seen.index(f"GET /resource_providers/{hosts[0]}/aggregates")
    assert content(snapshot) == one_by_one(client)


def test_equal_inventories_and_traits_are_kept_once(
    client: PlacementClient, hosts: list[str]
) -> None:
    """What each further equal host takes of the memory is its own uuid and name."""
    snapshot = read_whole_cloud(client)
    with_cpus = [p for p in snapshot.providers if p.uuid in hosts]
    assert len({id(p.inventories["VCPU"]) for p in with_cpus}) == 1
    assert len({id(p.traits) for p in with_cpus}) == 1
