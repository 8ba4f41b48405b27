"""How the groups of translators and of the flavor itself become a query."""

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, InvalidInput
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.compose import (
    Contributions,
    check_group,
    check_traits,
    compose,
    merged_groups,
    traits_of_root,
)

FLAVOR = Flavor(name="f", vcpus=1, memory_mb=1)
AVX = frozenset({"HW_CPU_X86_AVX2"})
FAST = frozenset({"CUSTOM_FAST"})


def text(
    contributions: Contributions, *own: RequestGroup, policy: str | None = None, root: bool = False
) -> str:
    it = compose(FLAVOR, OwnGroups(own, policy), contributions, traits_on_root=root)
    return it.to_query_string()


def test_groups_of_equal_suffix_are_merged() -> None:
    first = RequestGroup("_A", {"VGPU": 1}, required=AVX)
    second = RequestGroup("_A", {"CUSTOM_LICENCE": 2}, forbidden=FAST)
    assert text({"one": [first], "two": [second]}) == (
        "resources_A=CUSTOM_LICENCE:2,VGPU:1&required_A=HW_CPU_X86_AVX2,!CUSTOM_FAST"
    )


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(3, "resources=VCPU:3", id="3 of the flavor replace 1"),
        pytest.param(0, "resources=MEMORY_MB:1", id="0 of the flavor: no VCPU"),
    ],
)
def test_an_amount_of_the_flavor_replaces_the_translators(own: int, expected: str) -> None:
    memory = RequestGroup(resources={} if own else {"MEMORY_MB": 1})
    ours = RequestGroup(resources={"VCPU": own})
    assert text({"sizes": [RequestGroup(resources={"VCPU": 1}), memory]}, ours) == expected


def test_an_amount_of_a_port_is_not_replaced() -> None:
    port = RequestGroup("p1", {"VGPU": 1}, requester_id="p1")
    own = RequestGroup(resources={"VGPU": 5})
    assert text({"ports": [port]}, own) == "resources=VGPU:5&resourcesp1=VGPU:1"


def test_the_unsuffixed_group_is_first() -> None:
    groups = [RequestGroup("_A", {"VGPU": 1}), RequestGroup(resources={"VCPU": 1})]
    assert text({"any": groups}) == "resources=VCPU:1&resources_A=VGPU:1"


def test_two_translators_of_a_class_and_group() -> None:
    group = RequestGroup("_A", {"VGPU": 1})
    with pytest.raises(ExtensionError, match="'one' and 'two' both request VGPU in group '_A'"):
        text({"one": [group], "two": [group]})
    other = RequestGroup("_B", {"VGPU": 1})
    assert text({"one": [group], "two": [other]}, policy="none").startswith("resources_A=VGPU:1&")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param((), AVX | FAST, id="nothing else: all traits"),
        pytest.param(("DISK_GB",), AVX | FAST, id="only a disk: all traits"),
        pytest.param(("VGPU",), AVX, id="a device: CUSTOM_FAST may be its trait"),
        pytest.param(("DISK_GB", "VGPU"), AVX, id="a device beside a disk"),
    ],
)
def test_traits_of_the_root(resources: tuple[str, ...], expected: frozenset[str]) -> None:
    assert traits_of_root(AVX | FAST, resources) == expected


def test_the_traits_of_the_root_need_no_group() -> None:
    contributions: Contributions = {
        "numa": [RequestGroup("_A", {"VCPU": 1})],
        "traits": [RequestGroup(required=AVX, forbidden=FAST)],
    }
    assert text(contributions, root=True) == (
        "resources_A=VCPU:1&root_required=HW_CPU_X86_AVX2,!CUSTOM_FAST"
    )


def test_amounts_that_translators_add_to_a_query_of_nova() -> None:
    own = OwnGroups((RequestGroup(resources={"VCPU": 4}),), "isolate")
    query = merged_groups(own, {"any": [RequestGroup(resources={"VCPU": 1, "VGPU": 1})]})
    assert query.to_query_string() == "resources=VGPU:1"  # the flavor's VCPU: Nova has it


@pytest.mark.parametrize(
    ("contributions", "message"),
    [
        pytest.param({}, "flavor f: requests no resources", id="nothing"),
        pytest.param(
            {"any": [RequestGroup("_A", {"VGPU": 1}), SameSubtree(("_A", "_X"))]},
            "same_subtree: no group '_X'",
            id="a subtree of a group that does not exist",
        ),
        pytest.param(
            {"any": [RequestGroup("_A", required=AVX)]},
            r"group '_A': traits \(HW_CPU_X86_AVX2\) but no resources",
            id="a group of traits in no subtree",
        ),
    ],
)
def test_a_composed_query_that_placement_would_refuse(
    contributions: Contributions, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        text(contributions)


@pytest.mark.parametrize("amount", [0, -1, 2**31])
def test_an_amount_out_of_range(amount: int) -> None:
    with pytest.raises(InvalidInput, match=f"{amount} of VGPU; Placement takes 1 to 2147483647"):
        check_group("f", RequestGroup(resources={"VGPU": amount}))


def test_a_group_of_a_subtree_needs_no_resources() -> None:
    check_group("f", RequestGroup("_A", required=AVX), in_subtrees={"_A"})


def test_traits_that_are_required_and_forbidden() -> None:
    check_traits("flavor f", ())
    with pytest.raises(ConflictingExtraSpecs, match="CUSTOM_A, CUSTOM_B required and forbidden"):
        check_traits("flavor f", {"CUSTOM_B", "CUSTOM_A"})
