from collections import Counter
from fractions import Fraction

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus

# The spec's diagram: 1 Gold (100), 2 Silver (50), 3 Bronze (25), together 275.
SIX = {"gold": 100, "silver1": 50, "silver2": 50, "bronze1": 25, "bronze2": 25, "bronze3": 25}


def guest(weight: int, *cpu_sets: str) -> Contender:
    """A guest with a vCPU for each of the CPU sets."""
    return Contender(
        weight=weight, threads=Counter([CpuSet.parse(text, where="test") for text in cpu_sets])
    )


def by(total: int, *parts: int) -> list[Fraction]:
    return [Fraction(part, total) for part in parts]


@pytest.mark.parametrize(
    ("cpus", "gold", "silver", "bronze"),
    [
        # 100/275, 50/275 and 25/275 of one CPU: the spec's 36.4, 18.2 and 9.1 %
        pytest.param(
            "0",
            Fraction(100, 275),
            Fraction(50, 275),
            Fraction(25, 275),
            id="one CPU: the spec's figures",
        ),
        # 100/275 of 2 CPUs is 0.727 and fits one vCPU
        pytest.param(
            "0-1",
            Fraction(200, 275),
            Fraction(100, 275),
            Fraction(50, 275),
            id="two CPUs: twice that",
        ),
        # 100/275 of 4 would be 1.45: Gold gets 1; 3 CPUs by 175: 50 x 3/175, 25 x 3/175
        pytest.param(
            "0-3",
            1,
            Fraction(150, 175),
            Fraction(75, 175),
            id="four CPUs: a vCPU uses one at most",
        ),
        # Gold and both Silver full, 2 of 5 CPUs left for 3 Bronze
        pytest.param("0-4", 1, 1, Fraction(2, 3), id="five CPUs: the rest goes round again"),
        pytest.param("0-8", 1, 1, 1, id="more CPUs than vCPUs: all are full"),
    ],
)
def test_the_specs_six_guests(
    cpus: str, gold: Fraction, silver: Fraction, bronze: Fraction
) -> None:
    host = {name: guest(weight, cpus) for name, weight in SIX.items()}
    expected = [gold, silver, silver, bronze, bronze, bronze]
    assert entitlement_cpus(host) == dict(zip(SIX, expected, strict=True))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param(
            {"big": guest(1000, *["0-10"] * 10), "one": guest(100, "0-10")},
            {"big": 10, "one": 1},
            id="11 vCPUs on 11 CPUs",
        ),
        pytest.param(
            {"big": guest(1000, *["0"] * 10), "one": guest(100, "0")},
            {"big": Fraction(10, 11), "one": Fraction(1, 11)},
            id="a guest of ten vCPUs counts ten times",
        ),
        pytest.param(
            {"wide": guest(100, *["0-1"] * 4), "narrow": guest(100, "0-1")},
            # by weight 1 each, and one vCPU can use that
            {"wide": 1, "narrow": 1},
            id="as many vCPUs do not make a guest heavier",
        ),
        pytest.param(
            {"gold": guest(100, "0"), "untiered": guest(1024, "0")},
            {"gold": Fraction(100, 1124), "untiered": Fraction(1024, 1124)},
            id="cgroup v1: an untiered guest has ten times Gold's weight",
        ),
        pytest.param(
            {"gold": guest(100, "0"), "untiered": guest(100, "0")},
            {"gold": Fraction(1, 2), "untiered": Fraction(1, 2)},
            id="cgroup v2: an untiered guest weighs like Gold",
        ),
        pytest.param({}, {}, id="no contender"),
        pytest.param({"halted": guest(100), "b": guest(1, "0")}, {"b": 1}, id="no vCPU runs"),
    ],
)
def test_shares_of_a_single_pool(
    host: dict[str, Contender], expected: dict[str, Fraction]
) -> None:
    assert entitlement_cpus(host) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param(
            {"a": guest(100, "0"), "b": guest(100, "0-1"), "c": guest(100, "1")},
            # b has a third of each CPU
            {"a": Fraction(2, 3), "b": Fraction(2, 3), "c": Fraction(2, 3)},
            id="sets that overlap act as one pool",
        ),
        pytest.param(
            {"a": guest(300, "0"), "b": guest(100, "0-1"), "c": guest(100, "1")},
            # 2 CPUs by 500 would be 1.2 for a, which gets CPU 0; b and c divide CPU 1
            {"a": 1, "b": Fraction(1, 2), "c": Fraction(1, 2)},
            id="until one of them fills its CPU",
        ),
        pytest.param(
            {**{f"a{i}": guest(100, "0") for i in range(3)}, "b": guest(100, "0-1")},
            # by 4, each would get half a CPU; CPU 0 gives a third, and b has CPU 1
            {"a0": Fraction(1, 3), "a1": Fraction(1, 3), "a2": Fraction(1, 3), "b": 1},
            id="a crowded thread gets no other CPU",
        ),
        pytest.param(
            {
                "gold": guest(200, "0-1", "0-1"),
                "bronze": guest(50, "2-3", "2-3"),
                "floats": guest(100, "0-3", "0-3"),
            },
            # Gold fills its cell; 2 CPUs of the other by 25, 25, 50, 50: 2/150 per weight
            {"gold": Fraction(2), "bronze": Fraction(2, 3), "floats": Fraction(4, 3)},
            id="NUMA cells: a floating vCPU goes to the cell with less weight",
        ),
        pytest.param(
            {"pinned": guest(1, "3", "2"), "a": guest(100, "0"), "b": guest(300, "0")},
            {"pinned": 2, "a": Fraction(1, 4), "b": Fraction(3, 4)},
            id="pinned to CPUs of its own: the weight does not matter",
        ),
        pytest.param(
            {"mixed": guest(400, "0", "1", "2-3", "2-3"), "bronze": guest(100, *["2-3"] * 4)},
            # 100 for each vCPU of mixed, pinned or not: 2 CPUs by 100, 100 and 4 x 25,
            # 2/300 per weight: 2/3 for each shared vCPU of mixed, 1/6 for each of bronze
            {"mixed": 2 + Fraction(4, 3), "bronze": Fraction(4, 6)},
            id="mixed: pinned vCPUs take their part of the weight along",
        ),
        pytest.param(
            {"mixed": guest(400, "2-3", "2-3"), "bronze": guest(100, *["2-3"] * 4)},
            # 2 CPUs by 2 x 200 and 4 x 25: bronze gets less than while they run
            {"mixed": Fraction(8, 5), "bronze": Fraction(2, 5)},
            id="mixed: while its pinned vCPUs sleep the others have their weight",
        ),
    ],
)
def test_cpu_sets(host: dict[str, Contender], expected: dict[str, Fraction]) -> None:
    assert entitlement_cpus(host) == expected


@pytest.mark.parametrize(
    ("cpus", "gold", "bronze", "service"),
    [
        # half the CPU for either slice; the guests divide theirs by 4 : 1
        pytest.param("0", Fraction(4, 10), Fraction(1, 10), Fraction(5, 10), id="one CPU"),
        # 3 CPUs by 80 + 20 and 50 + 50 would be 1.2 for Gold, which gets 1. The other 2
        # by 20, 50 and 50: 2/120 per weight. machine.slice has 4/3 of 3 CPUs, not a half.
        pytest.param("0-2", 1, *by(3, 1, 5), id="the rest of Gold goes to all, by weight"),
    ],
)
def test_slices(cpus: str, gold: Fraction, bronze: Fraction, service: Fraction) -> None:
    guests = {"gold": guest(1000, cpus), "bronze": guest(250, cpus)}
    host = {
        "machine.slice": Slice(weight=100, members=guests),
        "system.slice": Slice(weight=100, members={"ssh": guest(7, cpus, cpus)}),
        "user.slice": Slice(weight=100, members={"idle": Slice(weight=9, members={})}),
    }
    assert entitlement_cpus(host) == {
        "machine.slice/gold": gold,
        "machine.slice/bronze": bronze,
        "system.slice/ssh": service,
    }


def test_idle_members_of_a_slice_leave_weight_to_the_running_members() -> None:
    empty = Slice(weight=300, members={})
    members: dict[str, Contender | Slice] = {"a": guest(5, "0"), "empty": empty}
    machine = Slice(weight=100, members={**members, "halted": guest(300)})
    # 100 for a, 300 for b
    assert entitlement_cpus({"machine.slice": machine, "b": guest(300, "0")}) == {
        "machine.slice/a": Fraction(1, 4),
        "b": Fraction(3, 4),
    }


def test_a_contender_without_weight_or_cpus_is_refused() -> None:
    with pytest.raises(InvalidInput, match="weight of a cgroup: got 0"):
        guest(0, "0")
    with pytest.raises(InvalidInput, match="weight of a cgroup: got -1"):
        Slice(weight=-1, members={})
    with pytest.raises(InvalidInput, match="CPU set of a thread: no CPU"):
        Contender(weight=1, threads=Counter([CpuSet()]))
