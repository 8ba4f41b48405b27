"""A host whose guests weigh more than the host sells."""

from dataclasses import replace

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.host.audit_evidence import differing_sales
from cpu_tiers.tools.host.checks.oversold import check_oversold, shared_weights
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.sold import HostShares, Sale
from tests.unit.audit.hosts import SHARED, cgroups, evidence, guest

WORDS = (" shares compete for CPU time", " on a busy host a share keeps", " of what it is sold as")
GOLD, PLAIN = guest("gold", 100), guest("plain", None)


@pytest.mark.parametrize(
    ("found", "shares", "text"),
    [
        pytest.param(cgroups(gold=100, plain=100), 200, "", id="v2: 100 and 100 of 200"),
        pytest.param(
            cgroups(gold=100, plain=100),
            199,
            "200, and the host sells 199: 99.5%, servers with a tier have 100, 1 without a tier"
            " have 100",
            id="v2: one more than sold",
        ),
        pytest.param(
            cgroups(version=1, gold=100, plain=1024),
            562,
            "1124, and the host sells 562: 50.0%, servers with a tier have 100, 1 without a tier"
            " have 1024",
            id="v1",
        ),
        pytest.param(
            cgroups(gold=300, plain=100, parts={"beside": {"/machine.slice/x": 100}}),
            400,
            "500, and the host sells 400: 80.0%, servers with a tier have 300, 1 without a tier"
            " have 100, cgroups without a guest have 100",
            id="a raised weight and a foreign cgroup",
        ),
        pytest.param(cgroups(gold=100, plain=100), 0, "", id="nothing is sold"),
    ],
)
def test_an_oversold_host(found: HostCgroups, shares: int, text: str) -> None:
    findings = check_oversold(evidence(GOLD, PLAIN, found=found, shares=shares))
    texts = [finding.found for finding in findings]
    for words in WORDS:
        texts = [found.replace(words, "") for found in texts]
    assert texts == ([text] if text else [])


def test_reserved_shares_are_not_for_sale() -> None:
    vcpu = Inventory(total=2, max_unit=2)
    # 250 of 400 are for sale, and the guests weigh 300.
    shares = Inventory(total=400, max_unit=400, reserved=150)
    host = evidence(guest("gold", 300), found=cgroups(gold=300))
    inventories = {"VCPU": vcpu, "CUSTOM_VCPU_SHARES": shares}
    (finding,) = check_oversold(replace(host, host=replace(host.host, inventories=inventories)))
    assert "300 shares compete" in finding.found
    assert "the host sells 250: on a busy host a share keeps 83.3%" in finding.found


@pytest.mark.parametrize(
    ("above", "slices"),
    [
        pytest.param({"/machine.slice": 100, "/system.slice": 100}, 0, id="no heavier"),
        # 300 : 100 of the guests' 200
        pytest.param({"/machine.slice": 100, "/system.slice": 300}, 600, id="thrice as heavy"),
        pytest.param(
            {"/machine.slice": 100, "/system.slice": 300, "/user.slice": 100, "/other": 150},
            900,
            id="two heavier, and one that is not",
        ),
        pytest.param({"/machine.slice": 0, "/system.slice": 100}, 0, id="cpu.idle of the guests"),
    ],
)
def test_slices_that_outweigh_the_guests(above: dict[str, int], slices: int) -> None:
    host = evidence(GOLD, PLAIN, found=cgroups(gold=100, plain=100, above=above), shares=800)
    assert shared_weights(host).slices == slices
    texts = [finding.found for finding in check_oversold(host)]
    assert texts == (
        [
            "1100 shares compete for CPU time, and the host sells 800: on a busy host a share"
            " keeps 72.7% of what it is sold as, servers with a tier have 100, 1 without a tier"
            " have 100, slices beside all guests have 900"
        ]
        if slices == 900
        else []
    )


def test_a_cgroup_among_the_guests_is_outweighed_with_them() -> None:
    found = cgroups(
        gold=100,
        above={"/machine.slice": 100, "/system.slice": 200},
        parts={"beside": {"/machine.slice/x": 50}},
    )
    weights = shared_weights(evidence(GOLD, found=found))
    # 200 : 100 of 150
    assert [weights.foreign, weights.slices, weights.total] == [50, 300, 450]


def test_servers_that_are_shut_off_have_sold_shares() -> None:
    allocated = HostShares(capacity=200, held={"gold-uuid": 100, "off": 100})
    host = evidence(GOLD, PLAIN, allocated=allocated, shares=200, found=cgroups(gold=100))
    weights = shared_weights(host)
    assert [weights.tiers, weights.total] == [200, 300]


def test_dedicated_vcpus_weigh_nothing_on_the_shared_cpus() -> None:
    mixed = guest("gold", 200, SHARED, CpuSet({2}))
    assert shared_weights(evidence(mixed)).total == 100


def test_a_host_without_tiers_sells_nothing() -> None:
    assert list(check_oversold(evidence(PLAIN, shares=10))) == []


@pytest.mark.parametrize(
    ("ratio", "is_initial", "found"),
    [
        (4.0, False, []),
        (2.0, False, ["100 shares are sold as 0.25 CPUs by Placement, and as 0.5 by nova.conf"]),
        (2.0, True, []),
    ],
)
def test_placement_and_nova_conf_disagree(
    ratio: float, is_initial: bool, found: list[str]
) -> None:
    vcpu = Inventory(total=2, max_unit=2)
    shares = Inventory(
        total=200, max_unit=200, allocation_ratio=ratio, ratio_is_initial=is_initial
    )
    inventories = {"VCPU": vcpu, "CUSTOM_VCPU_SHARES": shares}
    by_placement = Sale.of(
        {**inventories, "CUSTOM_VCPU_SHARES": replace(shares, allocation_ratio=4.0)}
    )
    assert [finding.found for finding in differing_sales(inventories, by_placement)] == found


CPU0, CPU1 = CpuSet({0}), CpuSet({1})


def nodes(*guests: Domain) -> list[tuple[str, str]]:
    """Return the findings of a host whose two CPUs are two NUMA nodes, sold as 800 shares."""
    host = evidence(*guests, shares=800)
    return [(finding.where, finding.found) for finding in check_oversold(host)]


def on_node(cpus: CpuSet, *weights: int) -> list[Domain]:
    return [guest(f"{chr(97 + min(cpus))}{i}", w, cpus) for i, w in enumerate(weights)]


def test_a_node_that_carries_more_than_its_part_is_oversold_on_a_host_that_is_not() -> None:
    """800 of 800 shares are sold: 700 of them on node 0, and 100 on node 1."""
    assert nodes(*on_node(CPU0, 100, 200, 200, 200), *on_node(CPU1, 25, 25, 25, 25)) == [
        (
            "CPU 0",
            "700 shares compete on these CPUs, whose part of the shares that the host sells is"
            " 400: while all are busy, a share keeps 57.1% of what it is sold as",
        ),
        ("guest a1", "CPU 0 would be sold no more than its part without a1 and a0"),
        ("guest a0", "CPU 0 would be sold no more than its part without a1 and a0"),
    ]


def test_guests_without_a_tier_on_a_node() -> None:
    """In cgroup v2: 350 + 100 of 400. The guest with a tier need not leave for the other."""
    host = evidence(*on_node(CPU0, 350), guest("plain", None, CPU0), shares=800)
    (finding,) = check_oversold(host)
    assert finding.found.endswith(
        "keeps 88.9% of what it is sold as, guests without a tier have 100 of that"
    )
    assert finding.remedy(Step.DRIVER).startswith("resize the servers without a tier")


def test_nodes_that_carry_their_part_are_not_oversold() -> None:
    assert nodes(*on_node(CPU0, 200, 200), *on_node(CPU1, 400)) == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Step.NOVAS_DRIVER, "on hosts with a single NUMA node"),
        (Step.DRIVER, "enable_numa_reporting_to_placement"),
        (Step.NUMA, "(cpu-tiers plan relieve --audit)"),
    ],
)
def test_the_remedy_of_a_node_works_on_the_step(step: Step, words: str) -> None:
    host = replace(evidence(*on_node(CPU0, 300, 200), shares=800), step=step)
    first, *_ = check_oversold(host)
    remedy = first.remedy(step)
    assert remedy.startswith("migrate a1 to other hosts (cpu-tiers plan relieve --audit)")
    assert words in remedy


def test_the_remedy_of_a_guest_is_its_own() -> None:
    host = evidence(*on_node(CPU0, 300, 200), shares=800)
    _, of_guest = check_oversold(host)
    assert (of_guest.where, of_guest.do) == (
        "guest a1",
        "migrate the guest to another host (cpu-tiers plan relieve --audit)",
    )


def test_a_guest_without_a_tier_is_none_with_a_tier_at_the_least_weight() -> None:
    """An untiered guest that still weighs 1024, on a host that gives such guests the least."""
    found = cgroups(version=1, gold=100, plain=1024)
    host = evidence(GOLD, PLAIN, found=found, shares=600, untiered=2)
    (finding,) = check_oversold(host)
    assert "with a tier have 100, 1 without a tier have 1024" in finding.found


def test_nobody_leaves_a_node_for_a_weight_that_somebody_raised() -> None:
    """50 + 100 of 400 are sold; the raised weight of 400 makes it 500."""
    found = cgroups(a0=400, a1=100)
    host = evidence(*on_node(CPU0, 50, 100), found=found, shares=800)
    (finding,) = check_oversold(host)
    assert (finding.where, finding.do) == ("CPU 0", None)
    assert finding.found.startswith("500 shares compete")
