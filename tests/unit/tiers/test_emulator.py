"""What vCPUs get beside the own threads of QEMU; the arithmetic stands beside each case."""

from fractions import Fraction

import pytest

from cpu_tiers.tools.tiers.contenders import EMULATOR, Contender, Slice, beside_emulators
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus

ONE, TWO = frozenset({0}), frozenset({0, 1})


def guest(weight: int, cpus: frozenset[int], vcpus: int = 1) -> Slice:
    """Return a guest whose vCPUs and QEMU run on the same CPUs."""
    members = {
        "vcpus": Contender(weight=vcpus, threads={cpus: vcpus}),
        EMULATOR: Contender(weight=1, threads={cpus: 1}),
    }
    return Slice(weight=weight, members=members)


@pytest.mark.parametrize(
    ("percent", "gold", "bronze"),
    [
        # On one CPU a guest keeps its part, whether its vCPU or its QEMU runs.
        pytest.param(
            12, Fraction(80, 112), Fraction(20, 112), id="0.8 and 0.2 of the CPU, by 1.12"
        ),
        pytest.param(50, Fraction(8, 15), Fraction(2, 15), id="0.8 and 0.2, by 1.5"),
        pytest.param(100, Fraction(2, 5), Fraction(1, 10), id="half of the CPU"),
        pytest.param(1000, Fraction(2, 5), Fraction(1, 10), id="QEMU has no more than a vCPU"),
    ],
)
def test_emulators_on_a_single_cpu(percent: int, gold: Fraction, bronze: Fraction) -> None:
    host = {"machine": Slice(weight=1, members={"g": guest(100, ONE), "b": guest(25, ONE)})}
    for divide in (floor_cpus, entitlement_cpus):
        assert beside_emulators(host, Fraction(percent, 100), divide) == {
            "machine/g/vcpus": gold,
            "machine/b/vcpus": bronze,
        }


def test_the_vcpus_of_a_guest_together_lose_the_cpu_time_of_qemu() -> None:
    # Alone on a CPU, two vCPUs have 1 / 1.12 of it.
    got = beside_emulators({"g": guest(7, ONE, vcpus=2)}, Fraction(12, 100), floor_cpus)
    assert got == {"g/vcpus": Fraction(100, 112)}


def test_qemu_takes_nothing_from_a_vcpu_with_a_dedicated_cpu() -> None:
    got = beside_emulators({"g": guest(7, TWO)}, Fraction(12, 100), floor_cpus)
    assert got == {"g/vcpus": 1}


def test_floors_on_two_cpus() -> None:
    # Gold: its QEMU sleeps, and Silver with its QEMU puts 25 on each CPU: 100/125. Its QEMU is
    # awake: 50 of Gold and 50 of Silver are beside it, 50 on each CPU: 50/100, and so has QEMU.
    # Awake for r of the time: r x 1/2 = 1/4 x (4/5 - r x 3/10), so r = 8/23.
    # Silver: beside 2 x 50 of Gold 50/100; beside its QEMU and Gold, 62.5 on each CPU, 25/87.5.
    # r x 2/7 = 1/4 x (1/2 - r x 3/14), so r = 7/19.
    host = {"gold": guest(100, TWO), "silver": guest(50, TWO)}
    assert beside_emulators(host, Fraction(1, 4), floor_cpus) == {
        "gold/vcpus": Fraction(4, 5) - Fraction(8, 23) * Fraction(3, 10),
        "silver/vcpus": Fraction(1, 2) - Fraction(7, 19) * Fraction(3, 14),
    }


def test_entitlements_on_two_cpus() -> None:
    # All asleep: a CPU each. All awake: 2 CPUs by 50, 50, 25 and 25, Gold's 2/3 and Silver's 1/3.
    # Gold: r x 2/3 = 1/4 x (1 - r x 1/3), so r = 1/3. Silver: r x 1/3 = 1/4 x (1 - r x 2/3): 1/2.
    host = {"gold": guest(100, TWO), "silver": guest(50, TWO)}
    assert beside_emulators(host, Fraction(1, 4), entitlement_cpus) == {
        "gold/vcpus": 1 - Fraction(1, 3) * Fraction(1, 3),
        "silver/vcpus": 1 - Fraction(1, 2) * Fraction(2, 3),
    }


def test_a_service_has_no_qemu() -> None:
    # The service has half of the CPU, the guest the other half by 1.25.
    machine = Slice(weight=100, members={"g": guest(7, ONE)})
    host: dict[str, Contender | Slice] = {"machine": machine}
    host |= {"service": Contender(weight=100, threads={ONE: 1})}
    assert beside_emulators(host, Fraction(1, 4), floor_cpus) == {
        "machine/g/vcpus": Fraction(2, 5),
        "service": Fraction(1, 2),
    }
