"""A host with servers becomes NUMA-aware on a real Placement, in one transaction."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pytest

from cpu_tiers.accounting.holdings import ConsumerId
from cpu_tiers.accounting.relocation import Resident, ServersDoNotFit, relocate
from cpu_tiers.inventory import AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.errors import (
    GenerationConflict,
    InsufficientCapacity,
    PlacementUnavailable,
)
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.tools.writers.numa_reshape import FindRelocations, read_reshape_input, reshape
from cpu_tiers.tools.writers.plan_file import SavedPlan, plan_document, read_plan
from tests.driver_operations import delete, move

ANCHOR = "CUSTOM_NUMA_SERVER"
GIB_KB = 2**20
PLAIN, NUMA, HUGE, MOVING, MIGRATION = (
    f"{n}a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11" for n in range(5)
)

# Two nodes of 8 CPUs, 6 shared and 2 dedicated, with 8 GiB each: 6 small, 2 huge.
CELLS = tuple(
    NumaCell(
        id=number,
        cpus=CpuSet(range(8 * number, 8 * number + 8)),
        memory_kb=8 * GIB_KB,
        pages=(Pages(size_kb=4, total=6 * GIB_KB // 4), Pages(size_kb=2048, total=1024)),
    )
    for number in (0, 1)
)


def tree(value: bool | None, name: str = "cn") -> ProviderTree:
    host = Host(name=name, topology=HostTopology(arch="x86_64", cells=CELLS), disk_gb=100)
    options = InventoryOptions(
        cpu_shared_set=CpuSet.parse("0-5,8-13", where=""),
        cpu_dedicated_set=CpuSet.parse("6,7,14,15", where=""),
        cpu_allocation_ratio=AllocationRatio(value=2.0),
        reserved_host_memory_mb=0,
        report_vcpu_shares=True,
        enable_numa_reporting_to_placement=value,
    )
    return build_tree(host, options)


def guest(*cells: tuple[str, str, int], on: tuple[int, ...], size: int | None = None) -> Resident:
    """Return a guest of cells (shared vCPUs, dedicated vCPUs, memory), and where it runs."""

    def cpus(text: str) -> CpuSet:
        return CpuSet.parse(text, where="") if text else CpuSet()

    return Resident(
        topology=GuestTopology(
            cells=tuple(
                GuestCell(id=i, cpuset=cpus(shared), pcpuset=cpus(dedicated), memory_mb=mb)
                for i, (shared, dedicated, mb) in enumerate(cells)
            )
        ),
        pinning=Pinning(cells=tuple(CellPinning(host_cell=c, page_size_kb=size) for c in on)),
    )


RESIDENTS: Mapping[str, Resident] = {
    NUMA: guest(("0", "", 1024), ("1-2", "", 2048), on=(1, 0)),
    HUGE: guest(("", "0-1", 1024), on=(1,), size=2048),
    MIGRATION: guest(("0", "", 512), on=(0,)),  # the source of MOVING
}


def ask(consumers: Collection[ConsumerId]) -> Mapping[ConsumerId, Resident]:
    return {uuid: RESIDENTS[uuid] for uuid in consumers if uuid in RESIDENTS}


def moves_of(
    find: Callable[[Collection[ConsumerId]], Mapping[ConsumerId, Resident]],
) -> FindRelocations:
    """Compute the relocations anew at each attempt."""
    return lambda tree, amounts, used: relocate(tree, amounts, find(amounts.keys()), used)


MOVES = moves_of(ask)


def uuid_of(client: PlacementClient, name: str) -> str:
    provider = client.find_provider(name)
    assert provider is not None, name
    return provider.uuid


def held(client: PlacementClient, consumer: str) -> dict[str, dict[str, int]]:
    """Return what a consumer holds, by provider's name."""
    return {
        client.provider(uuid).name: dict(resources)
        for uuid, resources in client.consumer(consumer).allocations.items()
    }


@pytest.fixture
def root(client: PlacementClient) -> str:
    """A host that is not NUMA-aware, with servers; its uuid."""
    for name in ("cn", "other"):
        sync(client, tree(None, name))
    root, other = uuid_of(client, "cn"), uuid_of(client, "other")

    def server(uuid: str, **resources: int) -> None:
        request = AllocationRequest(allocations={root: resources})
        claim(client, uuid, request, project_id="p", user_id="u")

    server(PLAIN, VCPU=4, MEMORY_MB=4096, DISK_GB=10, **{VCPU_SHARES: 400})
    server(NUMA, VCPU=3, MEMORY_MB=3072)
    server(HUGE, PCPU=2, MEMORY_MB=1024)
    server(MOVING, VCPU=1, MEMORY_MB=512, DISK_GB=5)
    move(client, MOVING, MIGRATION)
    there = AllocationRequest(allocations={other: {"VCPU": 1, "MEMORY_MB": 512}})
    claim(client, MOVING, there, project_id="p", user_id="u")
    return root


def check(client: PlacementClient) -> None:
    """See that all of it is where it belongs."""
    # NUMA and MIGRATION hold 2560 MiB of node 0 and 1024 of node 1: more is left there
    assert held(client, PLAIN) == {
        "cn": {"DISK_GB": 10, ANCHOR: 1},
        "cn_NUMA1": {"VCPU": 4, VCPU_SHARES: 400},
        "cn_NUMA1_PAGES_4": {"MEMORY_MB": 4096},
    }
    assert held(client, NUMA) == {
        "cn": {ANCHOR: 1},
        "cn_NUMA1": {"VCPU": 1},
        "cn_NUMA1_PAGES_4": {"MEMORY_MB": 1024},
        "cn_NUMA0": {"VCPU": 2},
        "cn_NUMA0_PAGES_4": {"MEMORY_MB": 2048},
    }
    assert held(client, HUGE) == {
        "cn": {ANCHOR: 1},
        "cn_NUMA1": {"PCPU": 2},
        "cn_NUMA1_PAGES_2048": {"MEMORY_MB": 1024},
    }
    assert held(client, MIGRATION) == {
        "cn": {"DISK_GB": 5, ANCHOR: 1},
        "cn_NUMA0": {"VCPU": 1},
        "cn_NUMA0_PAGES_4": {"MEMORY_MB": 512},
    }
    assert held(client, MOVING) == {"other": {"VCPU": 1, "MEMORY_MB": 512}}
    assert client.consumer(MIGRATION).consumer_type == "MIGRATION"
    assert client.inventories(uuid_of(client, "cn")).by_class.keys() == {"DISK_GB", ANCHOR}
    assert client.traits(uuid_of(client, "cn_NUMA0")).names == {
        "HW_NUMA_ROOT",
        "CUSTOM_NUMA_CELL_0",
    }


def writes(seen: list[str]) -> list[str]:
    return [line for line in seen if not line.startswith("GET ")]


def test_servers_of_every_kind(client: PlacementClient, root: str, seen: list[str]) -> None:
    seen.clear()
    changes = reshape(client, tree(True), MOVES)
    check(client)
    assert [line for line in seen if "reshaper" in line] == ["POST /reshaper"]
    assert writes(seen)[-1] == "POST /reshaper"
    says = {str(change) for change in changes}
    assert (
        f"cn: allocations of consumer {HUGE}, which Nova does not know on cn -> "
        "2 PCPU on cn_NUMA1; 1024 MEMORY_MB on cn_NUMA1_PAGES_2048"
    ) in says
    assert sync(client, tree(True)) == ()


def test_a_second_run_writes_nothing(client: PlacementClient, root: str, seen: list[str]) -> None:
    reshape(client, tree(True), MOVES)
    seen.clear()
    assert reshape(client, tree(True), MOVES) == ()
    assert writes(seen) == []


def test_a_host_without_servers_and_a_new_host(client: PlacementClient) -> None:
    reshape(client, tree(True), MOVES)
    assert sync(client, tree(True)) == ()
    sync(client, tree(None, "other"))
    reshape(client, tree(True, "other"), MOVES)
    assert sync(client, tree(True, "other")) == ()


@pytest.mark.parametrize("line", ["POST /resource_providers", "PUT /res.*/traits", "POST /resh"])
@pytest.mark.parametrize("what", ["JSON 503", "answer lost"])
def test_killed_on_the_way(
    client: PlacementClient,
    root: str,
    faults: list[tuple[str, str]],
    line: str,
    what: str,
) -> None:
    # Four attempts fail, which is when the client gives up, as if it were killed there.
    faults += [(line, what), *[(line, "JSON 503")] * 3]
    with pytest.raises(PlacementUnavailable):
        reshape(client, tree(True), MOVES)
    assert faults == []
    reshape(client, tree(True), MOVES)
    check(client)
    assert reshape(client, tree(True), MOVES) == ()


def test_an_answer_that_was_lost(
    client: PlacementClient, root: str, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    faults.append(("POST /reshaper", "answer lost"))
    changes = reshape(client, tree(True), MOVES)
    check(client)
    assert any("allocations of" in str(change) for change in changes)


def test_somebody_writes_in_between(
    client: PlacementClient, root: str, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    faults += [("POST /reshaper", "JSON 409")] * 2
    reshape(client, tree(True), MOVES)
    check(client)
    assert seen.count("POST /reshaper") == 3
    faults += [("POST /reshaper", "JSON 409")] * 4
    sync(client, tree(None, "third"))
    with pytest.raises(GenerationConflict):
        reshape(client, tree(True, "third"), MOVES)


@pytest.mark.parametrize("with_disk", [False, True])
def test_a_server_that_goes_in_between(
    client: PlacementClient, root: str, with_disk: bool
) -> None:
    """With other inventories of the root as well, the whole host is read again."""
    gone: list[bool] = []

    def ask_slowly(consumers: Collection[ConsumerId]) -> Mapping[ConsumerId, Resident]:
        if not gone:
            gone.append(delete(client, PLAIN))
            if with_disk:
                present = client.inventories(root)
                disk = replace(present.by_class["DISK_GB"], total=200)
                more = {**present.by_class, "DISK_GB": disk}
                client.set_inventories(root, replace(present, by_class=more))
        return ask(consumers)

    changes = reshape(client, tree(True), moves_of(ask_slowly))
    assert not any(PLAIN in change.what for change in changes)  # it was not moved
    assert gone == [True]
    assert held(client, PLAIN) == {}
    assert client.usages(uuid_of(client, "cn_NUMA1"))["VCPU"] == 1  # NUMA's


LATE = "8a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"


def test_a_claim_in_between_costs_four_requests(
    client: PlacementClient, root: str, seen: list[str]
) -> None:
    late: list[str] = []

    def ask_slowly(consumers: Collection[ConsumerId]) -> Mapping[ConsumerId, Resident]:
        if not late:
            late.append(LATE)
            request = AllocationRequest(allocations={root: {"VCPU": 1, "MEMORY_MB": 512}})
            claim(client, LATE, request, project_id="p", user_id="u")
        return ask(consumers)

    changes = reshape(client, tree(True), moves_of(ask_slowly))
    first = seen.index("POST /reshaper")
    assert seen[first:] == [
        "POST /reshaper",
        f"GET /resource_providers/{root}/inventories",
        f"GET /resource_providers/{root}/allocations",
        f"GET /allocations/{LATE}",
        "POST /reshaper",
    ]
    check(client)
    assert set(held(client, LATE)) < {
        "cn",
        "cn_NUMA0",
        "cn_NUMA0_PAGES_4",
        "cn_NUMA1",
        "cn_NUMA1_PAGES_4",
    }
    moved = [change.what for change in changes if change.what.startswith("allocations of")]
    assert len(moved) == 5  # PLAIN, NUMA, HUGE, MIGRATION and LATE, each once


def test_a_server_that_is_written_without_another_amount(
    client: PlacementClient, root: str, seen: list[str]
) -> None:
    """Its generation is a new one, but the root says nothing of that: all is read again."""
    written: list[str] = []

    def ask_slowly(consumers: Collection[ConsumerId]) -> Mapping[ConsumerId, Resident]:
        if not written:
            written.append(PLAIN)
            client.set_consumers(client.consumer(PLAIN))
        return ask(consumers)

    reshape(client, tree(True), moves_of(ask_slowly))
    check(client)
    # Refused: by the generation of the root, and then by the generation of the consumer.
    assert seen.count("POST /reshaper") == 3


def test_a_server_without_room_is_named_and_nothing_changes(
    client: PlacementClient, root: str, seen: list[str]
) -> None:
    big = "9a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
    request = AllocationRequest(allocations={root: {"VCPU": 7, "MEMORY_MB": 256}})
    claim(client, big, request, project_id="p", user_id="u")
    seen.clear()
    with pytest.raises(ServersDoNotFit) as caught:
        reshape(client, tree(True), MOVES)
    (fault,) = caught.value.faults
    assert fault.where.startswith(f"consumer {big}")
    assert "cn_NUMA0: 7 VCPU: one server may have at most 6 (max_unit)" in fault.given
    assert writes(seen) == []


def test_placement_sees_less_room(
    client: PlacementClient, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Our arithmetic is wrong on purpose: what we take for the coming tree is larger.
    from cpu_tiers.tools.writers import numa_reshape

    def generous(state: object, wanted: ProviderTree) -> ProviderTree:
        return replace(wanted, providers=tuple(map(larger, wanted.providers)))

    def larger(provider: ResourceProvider) -> ResourceProvider:
        ten = {n: replace(i, total=10 * i.total, max_unit=10 * i.total)
               for n, i in provider.inventories.items()}  # fmt: skip
        return replace(provider, inventories=ten)

    request = AllocationRequest(allocations={root: {"VCPU": 12}})
    claim(client, "9a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11", request, project_id="p", user_id="u")
    monkeypatch.setattr(numa_reshape, "with_ratios", generous)
    with pytest.raises(InsufficientCapacity, match="not written: cn: allocations of") as caught:
        reshape(client, tree(True), MOVES)
    assert caught.value.status == 409
    assert client.inventories(root).by_class.keys() == {
        *("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", VCPU_SHARES),
    }
    assert held(client, NUMA) == {"cn": {"VCPU": 3, "MEMORY_MB": 3072}}


def saved_plan(client: PlacementClient) -> SavedPlan:
    """Return what ``reshape plan --save`` writes, and ``reshape apply`` reads."""
    before = read_reshape_input(client, tree(True))
    relocations = MOVES(before.tree, before.root_amounts, before.on_nodes.total)
    text = json.dumps(plan_document("cn", relocations))
    return read_plan(json.loads(text), where="plan.json")


def test_a_plan_that_was_made_when_placement_was_away(client: PlacementClient, root: str) -> None:
    # From what was read before; then through a file.
    saved = saved_plan(client)
    delete(client, PLAIN)  # it is no longer there: nothing is to be moved
    reshape(client, tree(True), saved)
    assert held(client, HUGE)["cn_NUMA1_PAGES_2048"] == {"MEMORY_MB": 1024}
    assert held(client, PLAIN) == {}
    assert reshape(client, tree(True), saved) == ()


def test_a_plan_that_is_out_of_date(client: PlacementClient, root: str, seen: list[str]) -> None:
    saved = saved_plan(client)
    delete(client, PLAIN)
    for consumer in (PLAIN, "9a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"):
        request = AllocationRequest(allocations={root: {"VCPU": 1}})
        claim(client, consumer, request, project_id="p", user_id="u")
    seen.clear()
    with pytest.raises(ServersDoNotFit) as caught:
        reshape(client, tree(True), saved)
    assert [fault.given for fault in caught.value.faults] == [
        "holds 1 VCPU, but 400 CUSTOM_VCPU_SHARES, 4096 MEMORY_MB, 4 VCPU when the plan was made",
        "is not in the plan",
    ]
    assert writes(seen) == []


def test_a_ratio_that_an_operator_set_goes_along(
    client: PlacementClient, set_ratio: Callable[[str, float], None]
) -> None:
    options = InventoryOptions(reserved_host_memory_mb=0)
    host = Host(name="cn", topology=HostTopology(arch="x86_64", cells=CELLS), disk_gb=None)
    sync(client, build_tree(host, options))
    set_ratio("cn", 3.0)
    # 40 VCPU fit on 2 x 8 x 3, on a node of 8 x 3 only 24 do
    root = uuid_of(client, "cn")
    for number in range(10):
        request = AllocationRequest(allocations={root: {"VCPU": 4}})
        consumer = f"{number}b2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
        claim(client, consumer, request, project_id="p", user_id="u")
    aware = replace(options, enable_numa_reporting_to_placement=True)
    reshape(client, build_tree(host, aware), MOVES)
    for name in ("cn_NUMA0", "cn_NUMA1"):
        provider = uuid_of(client, name)
        assert client.inventories(provider).by_class["VCPU"].allocation_ratio == 3.0
        assert client.usages(provider)["VCPU"] == 20
    assert sync(client, build_tree(host, aware)) == ()


@pytest.fixture
def set_ratio(client: PlacementClient) -> Callable[[str, float], None]:
    """Set VCPU's allocation ratio through the API, as an operator does."""

    def set_ratio(name: str, ratio: float) -> None:
        uuid = uuid_of(client, name)
        present = client.inventories(uuid)
        vcpu: Inventory = replace(present.by_class["VCPU"], allocation_ratio=ratio)
        wanted = Inventories(
            generation=present.generation, by_class={**present.by_class, "VCPU": vcpu}
        )
        client.set_inventories(uuid, wanted)

    return set_ratio
