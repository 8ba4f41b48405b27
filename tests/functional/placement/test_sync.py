"""A provider tree is written to a real Placement, beside what others have there."""

from dataclasses import replace

import pytest

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.errors import (
    GenerationConflict,
    InventoryInUse,
    PlacementAnswerInvalid,
    PlacementRefused,
    PlacementUnavailable,
    ProviderMismatch,
    ReportingCannotBeDisabled,
    UnknownNames,
)
from cpu_tiers.placement.plan import steps
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import changes_of, read_state, sync
from tests.driver_operations import delete

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"


def amount(total: int, *, ratio: float = 1.0, initial: bool = False) -> Inventory:
    return Inventory(total=total, max_unit=total, allocation_ratio=ratio, ratio_is_initial=initial)


def flat(*, vcpus: int = 8, shares: int | None = 800, **others: Inventory) -> ProviderTree:
    inventories = {"VCPU": amount(vcpus, ratio=4.0), **others}
    if shares is not None:
        inventories[VCPU_SHARES] = amount(shares)
    return ProviderTree(
        providers=(
            ResourceProvider(
                name="compute1", inventories=inventories, traits=frozenset({"HW_NUMA_ROOT"})
            ),
        ),
        managed_classes=frozenset({"VCPU", "PCPU", "MEMORY_MB", VCPU_SHARES}),
    )


NUMA = ProviderTree(
    providers=(
        ResourceProvider(name="compute1", inventories={"MEMORY_MB": amount(4096)}),
        *(
            ResourceProvider(
                name=f"compute1_NUMA{cell}",
                parent="compute1",
                inventories={"VCPU": amount(4), VCPU_SHARES: amount(400)},
                traits=frozenset({"HW_NUMA_ROOT", "CUSTOM_CELL"}),
            )
            for cell in (0, 1)
        ),
        ResourceProvider(
            name="compute1_NUMA1_NIC",
            parent="compute1_NUMA1",
            inventories={"NET_BW_EGR_KILOBIT_PER_SEC": amount(1000)},
        ),
    ),
    managed_classes=frozenset({"VCPU", "MEMORY_MB", VCPU_SHARES}),
)


def writes(seen: list[str]) -> list[str]:
    return [line for line in seen if not line.startswith("GET ")]


def lines(changes: tuple[object, ...]) -> list[str]:
    return [str(change) for change in changes]


def uuid_of(client: PlacementClient, name: str) -> str:
    provider = client.find_provider(name)
    assert provider is not None
    return provider.uuid


def totals(client: PlacementClient, name: str) -> dict[str, int]:
    by_class = client.inventories(uuid_of(client, name)).by_class
    return {resource_class: inventory.total for resource_class, inventory in by_class.items()}


def use_a_vcpu(client: PlacementClient, name: str) -> None:
    request = AllocationRequest(allocations={uuid_of(client, name): {"VCPU": 1}})
    claim(client, SERVER, request, project_id="p", user_id="u")


def test_a_new_host(client: PlacementClient) -> None:
    changes = sync(client, flat())
    described = "reserved 0, min_unit 1, max_unit {0}, step_size 1, allocation_ratio {1}"
    assert lines(changes) == [
        f"Placement: resource class {VCPU_SHARES} absent -> present",
        "compute1: provider absent -> present",
        "compute1: trait HW_NUMA_ROOT absent -> present",
        f"compute1: {VCPU_SHARES} absent -> total 800, {described.format(800, 1.0)}",
        f"compute1: VCPU absent -> total 8, {described.format(8, 4.0)}",
    ]
    assert totals(client, "compute1") == {"VCPU": 8, VCPU_SHARES: 800}
    traits = client.traits(uuid_of(client, "compute1"))
    assert traits.names == {"HW_NUMA_ROOT"}


@pytest.mark.parametrize("tree", [pytest.param(flat(), id="flat"), pytest.param(NUMA, id="NUMA")])
def test_the_second_run_writes_nothing(
    client: PlacementClient, seen: list[str], tree: ProviderTree
) -> None:
    assert sync(client, tree) != ()
    seen.clear()
    assert sync(client, tree) == ()
    assert writes(seen) == []


def test_a_plan_lists_the_changes_of_the_sync(client: PlacementClient, seen: list[str]) -> None:
    planned = changes_of(steps(read_state(client, NUMA), NUMA))
    assert writes(seen) == []
    assert sync(client, NUMA) == planned


def test_children_come_under_the_parents(client: PlacementClient) -> None:
    sync(client, NUMA)
    root = uuid_of(client, "compute1")
    parents = {p.name: p.parent for p in client.providers_in_tree(root)}
    assert parents == {
        "compute1": None,
        "compute1_NUMA0": root,
        "compute1_NUMA1": root,
        "compute1_NUMA1_NIC": uuid_of(client, "compute1_NUMA1"),
    }


def test_a_tree_grows(client: PlacementClient, seen: list[str]) -> None:
    sync(client, ProviderTree(providers=NUMA.providers[:2], managed_classes=NUMA.managed_classes))
    seen.clear()
    providers = [c.provider for c in sync(client, NUMA) if c.what == "provider"]
    assert providers == ["compute1_NUMA1", "compute1_NUMA1_NIC"]
    assert [line for line in writes(seen) if line.startswith("POST")] == [
        "POST /resource_providers",
        "POST /resource_providers",
    ]


def test_only_differences_are_written(client: PlacementClient, seen: list[str]) -> None:
    sync(client, flat(vcpus=8))
    seen.clear()
    assert lines(sync(client, flat(vcpus=16))) == [
        "compute1: VCPU total 8 -> 16",
        "compute1: VCPU max_unit 8 -> 16",
    ]
    assert writes(seen) == [f"PUT /resource_providers/{uuid_of(client, 'compute1')}/inventories"]


def test_foreign_classes_and_traits_stay(client: PlacementClient) -> None:
    sync(client, flat())
    uuid = uuid_of(client, "compute1")
    client.ensure_names({"CUSTOM_LICENCE"}, {"CUSTOM_RACK_7"})
    present = client.inventories(uuid)
    foreign = {"CUSTOM_LICENCE": amount(3, ratio=1.5), "DISK_GB": amount(100)}
    written = client.set_inventories(
        uuid,
        Inventories(generation=present.generation, by_class={**present.by_class, **foreign}),
    )
    names = frozenset({"CUSTOM_RACK_7"})  # and HW_NUMA_ROOT is taken away
    client.set_traits(uuid, Traits(generation=written.generation, names=names))
    gpu = client.create_provider("compute1_GPU", parent_uuid=uuid)

    assert [change.what for change in sync(client, flat(vcpus=2))] == [
        "trait HW_NUMA_ROOT",
        "VCPU total",
        "VCPU max_unit",
    ]
    by_class = client.inventories(uuid).by_class
    assert {name: by_class[name] for name in foreign} == foreign
    assert client.traits(uuid).names == {"CUSTOM_RACK_7", "HW_NUMA_ROOT"}
    assert client.provider(gpu.uuid).parent == uuid


def test_a_managed_class_that_the_tree_lacks_goes(client: PlacementClient) -> None:
    sync(client, flat(MEMORY_MB=amount(1024)))
    (change,) = sync(client, flat())
    assert (change.what, change.after) == ("MEMORY_MB", "absent")
    assert totals(client, "compute1") == {"VCPU": 8, VCPU_SHARES: 800}


def test_a_class_in_use_cannot_go(client: PlacementClient) -> None:
    sync(client, flat(MEMORY_MB=amount(1024)))
    use_a_vcpu(client, "compute1")
    tree = ProviderTree(
        providers=(
            ResourceProvider(name="compute1", inventories={VCPU_SHARES: amount(800)}),
            ResourceProvider(name="compute1_NUMA0", parent="compute1"),
        ),
        managed_classes=flat().managed_classes,
    )
    with pytest.raises(InventoryInUse, match="compute1: VCPU cannot be removed") as error:
        sync(client, tree)
    assert (error.value.provider, error.value.resource_classes) == ("compute1", ("VCPU",))
    assert error.value.written == ()
    assert [change.split(" ", 2)[:2] for change in lines(error.value.unwritten)] == [
        ["compute1:", "MEMORY_MB"],
        ["compute1:", "VCPU"],
        ["compute1_NUMA0:", "provider"],
    ]
    assert "Nothing was written." in str(error.value)
    assert client.find_provider("compute1_NUMA0") is None
    delete(client, SERVER)
    sync(client, tree)
    assert totals(client, "compute1") == {VCPU_SHARES: 800}


def test_reporting_of_shares_cannot_be_turned_off(
    client: PlacementClient, seen: list[str]
) -> None:
    sync(client, flat())
    seen.clear()
    with pytest.raises(ReportingCannotBeDisabled, match="report_vcpu_shares = true") as error:
        sync(client, flat(shares=None, vcpus=16))
    assert error.value.provider == "compute1"
    assert writes(seen) == []


def test_shares_may_move_to_the_numa_nodes(client: PlacementClient) -> None:
    sync(client, flat())
    sync(client, NUMA)
    assert totals(client, "compute1") == {"MEMORY_MB": 4096}
    assert totals(client, "compute1_NUMA0") == {"VCPU": 4, VCPU_SHARES: 400}


def test_a_ratio_that_was_not_configured_is_kept(client: PlacementClient, seen: list[str]) -> None:
    def tree(ratio: float, *, initial: bool) -> ProviderTree:
        return flat(MEMORY_MB=amount(1024, ratio=ratio, initial=initial))

    sync(client, tree(1.0, initial=True))
    uuid = uuid_of(client, "compute1")
    assert client.inventories(uuid).by_class["MEMORY_MB"].allocation_ratio == 1.0
    assert lines(sync(client, tree(2.0, initial=False))) == [
        "compute1: MEMORY_MB allocation_ratio 1.0 -> 2.0"
    ]
    seen.clear()
    assert sync(client, tree(1.0, initial=True)) == ()
    assert writes(seen) == []


@pytest.mark.parametrize(
    ("parent", "said"),
    [
        pytest.param(None, "compute1_NUMA0 as a root, not under compute1", id="a root"),
        pytest.param("compute2", "under compute2, not under compute1", id="of another host"),
    ],
)
def test_a_child_of_another_parent_is_refused(
    client: PlacementClient, seen: list[str], parent: str | None, said: str
) -> None:
    parent_uuid = client.create_provider(parent).uuid if parent else None
    client.create_provider("compute1_NUMA0", parent_uuid=parent_uuid)
    seen.clear()
    with pytest.raises(ProviderMismatch, match=said) as error:
        sync(client, NUMA)
    assert error.value.provider == "compute1_NUMA0"
    assert "Nothing was written." in str(error.value)
    assert writes(seen) == []


def test_a_standard_name_that_placement_lacks_is_refused(
    client: PlacementClient, seen: list[str]
) -> None:
    with pytest.raises(UnknownNames, match="HW_NOT_YET_THERE"):
        sync(client, flat(HW_NOT_YET_THERE=amount(1)))
    assert writes(seen) == []


@pytest.mark.parametrize("conflicts", [1, 3])
def test_a_conflict_is_met_with_a_fresh_read(
    client: PlacementClient, faults: list[tuple[str, str]], conflicts: int
) -> None:
    faults += [("PUT /resource_providers", "JSON 409")] * conflicts
    assert len(sync(client, flat())) == 5
    assert sync(client, flat()) == ()


def test_after_too_many_conflicts_the_error_lists_the_written_changes(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    # Four attempts, each of a write and then of four reads and writes.
    faults += [("PUT /resource_providers", "JSON 409")] * 20
    with pytest.raises(GenerationConflict) as error:
        sync(client, flat())
    assert faults == []
    assert [change.split(" absent")[0] for change in lines(error.value.written)] == [
        f"Placement: resource class {VCPU_SHARES}",
        "compute1: provider",
    ]
    assert [change.split(" absent")[0] for change in lines(error.value.unwritten)] == [
        "compute1: trait HW_NUMA_ROOT",
        f"compute1: {VCPU_SHARES}",
        "compute1: VCPU",
    ]
    assert sync(client, flat()) == error.value.unwritten


def test_claims_between_read_and_write_cost_no_second_look_at_the_tree(
    client: PlacementClient, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    sync(client, NUMA)
    seen.clear()
    larger = replace(NUMA.providers[1], inventories={"VCPU": amount(8), VCPU_SHARES: amount(800)})
    tree = replace(NUMA, providers=(NUMA.providers[0], larger, *NUMA.providers[2:]))
    faults += [("PUT /resource_providers", "JSON 409")] * 4
    sync(client, tree)
    path = f"/resource_providers/{uuid_of(client, 'compute1_NUMA0')}/inventories"
    first = seen.index(f"PUT {path}")
    assert seen[first : first + 9] == [f"PUT {path}", *[f"GET {path}", f"PUT {path}"] * 4]


def test_a_second_writer_between_read_and_write(
    client: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync(client, flat(vcpus=8))
    uuid = uuid_of(client, "compute1")
    honest = client.set_inventories

    def overtaken(provider_uuid: str, inventories: Inventories) -> Inventories:
        monkeypatch.undo()
        present = client.inventories(uuid)
        disk = {**present.by_class, "DISK_GB": amount(50)}
        honest(uuid, Inventories(generation=present.generation, by_class=disk))
        return honest(provider_uuid, inventories)

    monkeypatch.setattr(client, "set_inventories", overtaken)
    assert lines(sync(client, flat(vcpus=16))) == [
        "compute1: VCPU total 8 -> 16",
        "compute1: VCPU max_unit 8 -> 16",
    ]
    assert totals(client, "compute1") == {"VCPU": 16, VCPU_SHARES: 800, "DISK_GB": 50}


@pytest.mark.parametrize("fault", ["answer lost", "silence", "HTML 429", "JSON 500", "HTML 502"])
@pytest.mark.parametrize(
    "request_line",
    [
        "PUT /resource_classes/",
        "POST /resource_providers",
        "PUT /resource_providers/.*/inventories",
        "PUT /resource_providers/.*/traits",
    ],
)
def test_a_lost_answer_ends_right(
    client: PlacementClient, faults: list[tuple[str, str]], request_line: str, fault: str
) -> None:
    planned = changes_of(steps(read_state(client, flat()), flat()))
    faults += [(request_line, fault)]
    assert sync(client, flat()) == planned
    assert faults == []
    assert sync(client, flat()) == ()


def test_when_placement_goes_away_half_way_the_error_lists_the_changes(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    faults += [("PUT /resource_providers", "HTML 503")] * 4
    with pytest.raises(PlacementUnavailable) as error:
        sync(client, flat())
    written, unconfirmed, unwritten = (
        [change.split(" absent")[0] for change in lines(part)]
        for part in (error.value.written, error.value.unconfirmed, error.value.unwritten)
    )
    assert written == [f"Placement: resource class {VCPU_SHARES}", "compute1: provider"]
    assert unconfirmed == ["compute1: trait HW_NUMA_ROOT"]
    assert unwritten == [f"compute1: {VCPU_SHARES}", "compute1: VCPU"]
    text = str(error.value)
    assert "\nwritten: compute1: provider absent -> present\n" in text
    assert "\nperhaps written: compute1: trait HW_NUMA_ROOT absent -> present\n" in text
    assert "\nnot written: compute1: VCPU absent -> total 8" in text
    assert len(sync(client, flat())) == 3


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param("HTML 200", PlacementAnswerInvalid, id="HTML 200"),
        pytest.param("JSON 403", PlacementRefused, id="JSON 403"),
    ],
)
def test_a_read_that_fails_writes_nothing(
    client: PlacementClient,
    faults: list[tuple[str, str]],
    seen: list[str],
    fault: str,
    kind: type[Exception],
) -> None:
    faults += [("GET /resource_providers", fault)]
    with pytest.raises(kind, match=r"Nothing was written\."):
        sync(client, flat())
    assert writes(seen) == []
