from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.errors import (
    ProviderMismatch,
    ProviderNotFound,
    ReportingCannotBeDisabled,
)
from cpu_tiers.placement.plan import steps
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.placement.steps import (
    Change,
    CreateName,
    CreateProvider,
    ProviderState,
    SetInventories,
    SetTraits,
    State,
    Step,
)

MANAGED = frozenset({"VCPU", "PCPU", VCPU_SHARES})
EIGHT = Inventory(total=8, max_unit=8, allocation_ratio=4.0)
SIXTEEN = Inventory(total=16, max_unit=16, allocation_ratio=4.0)


def host(*traits: str, **inventories: Inventory) -> ResourceProvider:
    return ResourceProvider(name="c1", inventories=inventories, traits=frozenset(traits))


def tree(*providers: ResourceProvider) -> ProviderTree:
    return ProviderTree(providers=providers, managed_classes=MANAGED)


def present(*traits: str, **inventories: Inventory) -> ProviderState:
    return ProviderState(
        uuid="some-uuid",
        parent=None,
        inventories=Inventories(generation=7, by_class=inventories),
        traits=Traits(generation=7, names=frozenset(traits)),
    )


def state(**providers: ProviderState) -> State:
    return State(providers=providers)


NEW = (
    CreateProvider(provider="c1", parent=None),
    # the traits first: a server that forbids HW_NUMA_ROOT must not find the VCPU before
    SetTraits(provider="c1", before=frozenset(), after=frozenset({"HW_NUMA_ROOT"})),
    SetInventories(provider="c1", before={}, after={"VCPU": EIGHT}),
)


@pytest.mark.parametrize(
    ("before", "wanted", "expected"),
    [
        pytest.param(
            state(), host("HW_NUMA_ROOT", VCPU=EIGHT), NEW, id="a new provider gets everything"
        ),
        pytest.param(
            state(),
            host(),
            NEW[:1],
            id="nothing is written into a provider that has nothing",
        ),
        pytest.param(
            state(c1=present("HW_NUMA_ROOT", VCPU=EIGHT)),
            host("HW_NUMA_ROOT", VCPU=EIGHT),
            (),
            id="equal: nothing",
        ),
        pytest.param(
            state(c1=present("CUSTOM_RACK_7", VCPU=EIGHT, DISK_GB=SIXTEEN)),
            host(VCPU=EIGHT),
            (),
            id="a foreign class and a foreign trait are left alone",
        ),
        pytest.param(
            state(c1=present(VCPU=EIGHT, DISK_GB=SIXTEEN)),
            host(VCPU=SIXTEEN),
            (
                SetInventories(
                    provider="c1",
                    before={"VCPU": EIGHT, "DISK_GB": SIXTEEN},
                    after={"VCPU": SIXTEEN, "DISK_GB": SIXTEEN},
                ),
            ),
            id="a foreign class is written back as it was",
        ),
        pytest.param(
            state(c1=present(VCPU=EIGHT, PCPU=EIGHT)),
            host(VCPU=EIGHT),
            (
                SetInventories(
                    provider="c1", before={"VCPU": EIGHT, "PCPU": EIGHT}, after={"VCPU": EIGHT}
                ),
            ),
            id="a managed class that the tree lacks goes",
        ),
        pytest.param(
            state(c1=present("A")),
            host("A", "B"),
            (SetTraits(provider="c1", before=frozenset({"A"}), after=frozenset({"A", "B"})),),
            id="a trait is added to the present traits",
        ),
        pytest.param(
            State(
                providers={"c1": present()},
                absent_classes=frozenset({"CUSTOM_B", "CUSTOM_A"}),
                absent_traits=frozenset({"CUSTOM_T"}),
            ),
            host(),
            (
                CreateName(kind="resource class", name="CUSTOM_A"),
                CreateName(kind="resource class", name="CUSTOM_B"),
                CreateName(kind="trait", name="CUSTOM_T"),
            ),
            id="names come first",
        ),
    ],
)
def test_steps(before: State, wanted: ResourceProvider, expected: tuple[Step, ...]) -> None:
    assert steps(before, tree(wanted)) == expected


@pytest.mark.parametrize(
    ("has", "wants", "initial", "becomes"),
    [
        pytest.param(2.0, 4.0, True, 2.0, id="an initial ratio gives way to the present ratio"),
        pytest.param(2.0, 4.0, False, 4.0, id="a configured ratio wins"),
        pytest.param(None, 4.0, True, 4.0, id="an initial ratio is for a new inventory"),
        pytest.param(1.10000002, 1.1, False, 1.10000002, id="equal in single precision is equal"),
    ],
)
def test_ratio(has: float | None, wants: float, initial: bool, becomes: float) -> None:
    wanted = Inventory(total=16, max_unit=16, allocation_ratio=wants, ratio_is_initial=initial)
    old = {} if has is None else {"VCPU": Inventory(total=8, max_unit=8, allocation_ratio=has)}
    (step,) = steps(state(c1=present(**old)), tree(host(VCPU=wanted)))
    assert isinstance(step, SetInventories)
    assert step.after["VCPU"].allocation_ratio == becomes


def test_parents_come_before_children() -> None:
    child = ResourceProvider(name="c1_NUMA0", parent="c1", inventories={"VCPU": EIGHT})
    assert steps(state(), tree(host(), child)) == (
        CreateProvider(provider="c1", parent=None),
        CreateProvider(provider="c1_NUMA0", parent="c1"),
        SetInventories(provider="c1_NUMA0", before={}, after={"VCPU": EIGHT}),
    )


@pytest.mark.parametrize(
    ("initial", "has_shares", "becomes"),
    [
        pytest.param(True, False, 10.0, id="a new inventory has the ratio of VCPU"),
        pytest.param(True, True, 10.0, id="a present inventory gets the ratio of VCPU, too"),
        pytest.param(False, True, 4.0, id="a configured ratio wins"),
    ],
)
def test_the_ratio_of_shares_is_the_ratio_of_vcpu(
    initial: bool, has_shares: bool, becomes: float
) -> None:
    """As nova-compute reports it, where an operator has set the ratio of VCPU through the API."""
    old = {"VCPU": Inventory(total=8, max_unit=8, allocation_ratio=10.0)}
    if has_shares:
        old[VCPU_SHARES] = Inventory(total=800, max_unit=800, allocation_ratio=2.0)
    wanted = {
        name: Inventory(total=n, max_unit=n, allocation_ratio=4.0, ratio_is_initial=initial)
        for name, n in {"VCPU": 8, VCPU_SHARES: 800}.items()
    }
    (step,) = steps(state(c1=present(**old)), tree(host(**wanted)))
    assert isinstance(step, SetInventories)
    assert {step.after[name].allocation_ratio for name in wanted} == {becomes}


@pytest.mark.parametrize(
    ("is_under", "belongs_under"),
    [
        pytest.param(None, "c1", id="a root that should be a child"),
        pytest.param("c2", "c1", id="a child of another"),
        pytest.param("c2", None, id="a child that should be a root"),
    ],
)
def test_another_parent_is_refused(is_under: str | None, belongs_under: str | None) -> None:
    wanted = ResourceProvider(name="x", parent=belongs_under)
    with pytest.raises(ProviderMismatch) as error:
        steps(state(x=replace(present(), parent=is_under)), tree(wanted))
    assert error.value.provider == "x"


def node(*, parent: str = "c1", **inventories: Inventory) -> ProviderState:
    return replace(present("HW_NUMA_ROOT", **inventories), parent=parent)


NODE = ResourceProvider(name="c1_NUMA0", parent="c1", inventories={"VCPU": EIGHT})


def test_a_numa_node_that_the_host_no_longer_has_is_emptied() -> None:
    before = state(
        c1=present(),
        c1_NUMA0=node(VCPU=EIGHT),
        c1_NUMA1=node(VCPU=EIGHT, DISK_GB=SIXTEEN),
        c1_NUMA2=node(DISK_GB=SIXTEEN),
    )
    assert steps(before, tree(host(), NODE)) == (
        SetInventories(
            provider="c1_NUMA1",
            before={"VCPU": EIGHT, "DISK_GB": SIXTEEN},
            after={"DISK_GB": SIXTEEN},  # somebody else's
        ),
    )


def test_numa_nodes_that_would_vanish_are_refused_with_the_way_back() -> None:
    before = state(c1=present(), c1_NUMA0=node(), c1_NUMA1=node(VCPU=EIGHT))
    with pytest.raises(ReportingCannotBeDisabled) as error:
        steps(before, tree(host(VCPU=SIXTEEN)))
    assert error.value.provider == "c1_NUMA1"
    assert "c1 reports its NUMA nodes (c1_NUMA1)" in str(error.value)
    assert "enable_numa_reporting_to_placement = true" in str(error.value)


def test_numa_nodes_without_anything_may_vanish() -> None:
    wanted = host(VCPU=SIXTEEN)
    before = state(c1=present(VCPU=SIXTEEN), c1_NUMA0=node(DISK_GB=EIGHT))
    assert steps(before, tree(wanted)) == ()


@pytest.mark.parametrize(
    ("initial", "becomes"),
    [
        pytest.param(True, 2.0, id="a ratio that an operator set on the root goes along"),
        pytest.param(False, 16.0, id="a configured ratio wins"),
    ],
)
def test_the_ratio_of_a_class_that_moves_to_numa_nodes(initial: bool, becomes: float) -> None:
    old = Inventory(total=8, max_unit=8, allocation_ratio=2.0)
    new = Inventory(total=8, max_unit=8, allocation_ratio=16.0, ratio_is_initial=initial)
    wanted = ResourceProvider(name="c1_NUMA0", parent="c1", inventories={"VCPU": new})
    *_, step = steps(state(c1=present(VCPU=old)), tree(host(), wanted))
    assert isinstance(step, SetInventories)
    assert step.after["VCPU"].allocation_ratio == becomes


SHARES = {VCPU_SHARES: EIGHT}


def test_shares_that_would_vanish_are_refused_with_the_way_back() -> None:
    with pytest.raises(ReportingCannotBeDisabled) as error:
        steps(state(c1=present(VCPU=EIGHT, **SHARES)), tree(host(VCPU=EIGHT)))
    assert error.value.provider == "c1"
    assert f"inventory delete some-uuid --resource-class {VCPU_SHARES}" in str(error.value)
    assert "let nova-compute report the host: only nova-compute reads" in str(error.value)


def test_shares_may_move_within_the_tree() -> None:
    child = ResourceProvider(name="c1_NUMA0", parent="c1", inventories=SHARES)
    assert [step.provider for step in steps(state(c1=present(**SHARES)), tree(host(), child))
            if isinstance(step, SetInventories)] == ["c1", "c1_NUMA0"]  # fmt: skip


def test_shares_that_are_not_ours_to_manage_stay() -> None:
    foreign = ProviderTree(providers=(host(),), managed_classes=frozenset({"VCPU"}))
    assert steps(state(c1=present(**SHARES)), foreign) == ()


def test_a_change_is_a_line_of_text() -> None:
    change = Change(provider="compute1", what="VCPU total", before="8", after="16")
    assert str(change) == "compute1: VCPU total 8 -> 16"


def test_each_amount_that_differs_is_a_change() -> None:
    before = Inventory(total=8, reserved=0, max_unit=8, allocation_ratio=4.0)
    after = Inventory(total=8, reserved=2, max_unit=8, allocation_ratio=1.5)
    step = SetInventories(provider="c1", before={"VCPU": before}, after={"VCPU": after})
    assert [str(change) for change in step.changes] == [
        "c1: VCPU reserved 0 -> 2",
        "c1: VCPU allocation_ratio 4.0 -> 1.5",
    ]


def test_only_managed_traits_go() -> None:
    managed = replace(
        tree(host("CUSTOM_PHYSNET_B")), managed_traits=("CUSTOM_PHYSNET_", "HW_NON_NUMA")
    )
    before = state(c1=present("CUSTOM_PHYSNET_A", "CUSTOM_RACK_7", "HW_NON_NUMA"))
    (step,) = steps(before, managed)
    assert [str(change) for change in step.changes] == [
        "c1: trait CUSTOM_PHYSNET_A present -> absent",
        "c1: trait CUSTOM_PHYSNET_B absent -> present",
        "c1: trait HW_NON_NUMA present -> absent",
    ]
    assert isinstance(step, SetTraits)
    assert step.after == {"CUSTOM_PHYSNET_B", "CUSTOM_RACK_7"}


def foreign(*children: ResourceProvider) -> ProviderTree:
    return ProviderTree(
        providers=(host(), *children), managed_classes=MANAGED, root_is_foreign=True
    )


def test_a_foreign_root_is_left_alone() -> None:
    child = ResourceProvider(name="c1:agent", parent="c1", uuid="the-uuid")
    assert steps(state(c1=present("A", VCPU=EIGHT)), foreign(child)) == (
        CreateProvider(provider="c1:agent", parent="c1", uuid="the-uuid"),
    )


def test_a_foreign_root_must_exist() -> None:
    with pytest.raises(ProviderNotFound, match="Placement has no provider c1") as error:
        steps(state(), foreign())
    assert error.value.provider == "c1"


def test_a_provider_of_another_uuid_is_refused() -> None:
    child = ResourceProvider(name="x", parent="c1", uuid="the-uuid")
    before = state(c1=present(), x=replace(present(), parent="c1"))
    with pytest.raises(ProviderMismatch, match="x with the uuid some-uuid, not the-uuid"):
        steps(before, foreign(child))
