from dataclasses import replace
from fractions import Fraction

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.occupancy import Division, Figures, Occupancy
from cpu_tiers.tools.tiers.tier import Tier

CPUS = CpuSet(range(2))
GOLD = Domain(name="gold", shares=100, vcpu_sets=(None,))
SILVER = Domain(name="silver", shares=50, vcpu_sets=(CpuSet({0, 1, 99}),))
UNTIERED = Domain(name="untiered", vcpu_sets=(CPUS,))


def occupancy(*domains: Domain, **services: Contender) -> Occupancy:
    """Two shared CPUs, each sold twice for 100 shares."""
    return Occupancy(
        domains=domains,
        cpus=CPUS,
        shared_cpus=CPUS,
        default_weight=100,
        services=services,
        inventories={
            VCPU: Inventory(total=2, max_unit=2, allocation_ratio=2.0),
            VCPU_SHARES: Inventory(total=200, max_unit=200, allocation_ratio=2.0),
        },
    )


def entitled(**figures: tuple[Fraction, Fraction]) -> dict[str, Figures]:
    """Floors and entitlements."""
    return {
        name: Figures(floor=floor, entitlement=high) for name, (floor, high) in figures.items()
    }


def test_entitlements() -> None:
    # entitlements: 2 CPUs by 100, 50 and 100. Floors: beside Gold, 100 has a CPU and 50 the other;
    # beside Silver, 100 is on either CPU.
    assert occupancy(GOLD, SILVER, UNTIERED).figures() == entitled(
        gold=(Fraction(100, 150), Fraction(4, 5)),
        silver=(Fraction(50, 150), Fraction(2, 5)),
        untiered=(Fraction(100, 150), Fraction(4, 5)),
    )


def test_the_own_threads_of_qemu() -> None:
    # The hand-worked hosts are in entitlement/test_emulator.py, 8/9 and 2/3 for the entitlements.
    # For the floors each guest counts 63/64 of its own weight and 65/64 of the others. Gold has
    # 1008 shares beside 2 x 260, and 504 beside 520 and 2 x 260 while its QEMU is awake:
    # r x 504/1024 is a quarter of 1008/1268 - r x (1008/1268 - 504/1024). Silver has 504 beside
    # 2 x 520, and 252 beside 260 and 2 x 520.
    host = replace(occupancy(GOLD, SILVER), emulator_overhead=Fraction(1, 4))
    expected = entitled(
        gold=(Fraction(144, 209), Fraction(8, 9)), silver=(Fraction(504, 1219), Fraction(2, 3))
    )
    assert host.figures() == expected
    assert host.vcpu_floors() == {name: (each.floor,) for name, each in expected.items()}


def test_qemu_pinned_away_from_the_vcpu() -> None:
    # QEMU and the vCPU have a CPU each. On CPU 0 the pair weighs 1024 shares or, while QEMU is
    # awake, 512. The kernel may count 63/64 of it, 1008 and 504.
    away = Domain(name="away", shares=100, vcpu_sets=(CpuSet({0}),), emulator_set=CpuSet({1, 99}))
    rival = Domain(name="rival", shares=100, vcpu_sets=(CpuSet({0}),))
    host = replace(occupancy(away, rival), emulator_overhead=Fraction(1, 4))
    # Beside 2 x 512 of the rival, 63/127, and 63/191 while QEMU is awake, for r x 1 = 1/4 x
    # (63/127 - r x 4032/24257): r = 63/508 x 24257/25265. The rival: 1/2, and with its QEMU 1/2
    # by 1.25.
    assert host.vcpu_floors() == {
        "away": (Fraction(63, 127) - Fraction(63, 508) * Fraction(4032, 25265),),
        "rival": (Fraction(2, 5),),
    }


def test_a_guest_without_vcpus_has_nothing() -> None:
    host = replace(
        occupancy(GOLD, Domain(name="none", vcpu_sets=())), emulator_overhead=Fraction(1, 4)
    )
    none = Figures(floor=Fraction(0), entitlement=Fraction(0))
    assert host.figures()["none"] == none
    assert host.vcpu_floors() == {"gold": (Fraction(1),), "none": ()}


def test_floor_of_each_vcpu() -> None:
    # CPU 0 by 512 shares for half of the pair, which may count as 504, and 1024 for the rival,
    # CPU 1 for the other half; while that half sleeps, the pair has 1024 on CPU 0
    pair = Domain(name="pair", shares=100, vcpu_sets=(CpuSet({0}), CpuSet({1})))
    rival = Domain(name="rival", shares=100, vcpu_sets=(CpuSet({0}),))
    host = occupancy(pair, rival, Domain(name="none", vcpu_sets=()))
    assert host.vcpu_floors() == {
        "pair": (Fraction(63, 191), Fraction(1)),
        "rival": (Fraction(1, 2),),
        "none": (),
    }
    assert host.figures() == entitled(
        pair=(Fraction(63, 191) + 1, Fraction(4, 3)),
        rival=(Fraction(1, 2), Fraction(2, 3)),
        none=(Fraction(0), Fraction(0)),
    )


def test_the_weight_of_the_cgroup_comes_before_the_shares_of_the_domain() -> None:
    told = Domain(name="told", shares=100, weight=300, vcpu_sets=(CpuSet({0}),))
    here = Domain(name="here", shares=100, vcpu_sets=(CpuSet({0}),))
    three, one = Fraction(3, 4), Fraction(1, 4)
    assert occupancy(told, here).figures() == entitled(told=(three, three), here=(one, one))


def test_services_compete_with_all_guests_together() -> None:
    # entitlements: 2 CPUs by 100 for machine.slice and 100 for two threads: 100/150 and 50/150 of
    # 1. Floors, in thirds: Gold 200 beside 150, 150 and 100 on two CPUs; Silver 100 beside 500
    service = Contender(weight=100, threads={CPUS: 2})
    assert occupancy(GOLD, SILVER, system=service).figures() == entitled(
        gold=(Fraction(200, 400), Fraction(2, 3)), silver=(Fraction(100, 350), Fraction(1, 3))
    )


def test_outlook() -> None:
    outlook = occupancy(GOLD, SILVER).outlook(Tier.parse("gold", "100", 1, where="t"))
    # 4 VCPU - 2, (400 - 150) / 100 of the shares
    assert outlook.more == 2
    # entitlements: 2 CPUs by 100, 50, 100; then by 100, 50, 100, 100. The floors of one more are
    # those of three guests; then Gold beside 250, and Silver beside 300, on two CPUs
    assert outlook.one == Division(
        guests=entitled(
            gold=(Fraction(2, 3), Fraction(4, 5)), silver=(Fraction(1, 3), Fraction(2, 5))
        ),
        newcomer=Figures(floor=Fraction(2, 3), entitlement=Fraction(4, 5)),
    )
    assert outlook.all == Division(
        guests=entitled(
            gold=(Fraction(100, 225), Fraction(4, 7)), silver=(Fraction(50, 200), Fraction(2, 7))
        ),
        newcomer=Figures(floor=Fraction(100, 225), entitlement=Fraction(4, 7)),
    )


def test_outlook_of_a_full_host() -> None:
    outlook = occupancy(GOLD, SILVER).outlook(Tier.parse("large", "1", 3, where="t"))
    assert (outlook.more, outlook.one, outlook.all) == (0, None, None)  # max_unit is 2


def test_guests_that_cannot_be_on_the_host() -> None:
    lost = Domain(name="lost", vcpu_sets=(CpuSet({7}), CpuSet({7})))
    with pytest.raises(InvalidInput) as caught:
        occupancy(GOLD, GOLD, lost)
    assert [str(fault).split(";")[0] for fault in caught.value.faults] == [
        "domain gold: given 2 times",
        "domain lost: a vCPU on CPU 7, which the host does not have",
    ]
