"""Drawn hosts whose guests stand on nodes, pinned sets and the whole pool: nothing is silent."""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.host.checks.conditions import check_overlaps
from cpu_tiers.tools.host.checks.due import evidence_dues
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding
from cpu_tiers.tools.host.checks.oversold import check_oversold
from cpu_tiers.tools.tiers.domain import Domain
from tests.draws import SEED
from tests.unit.audit.hosts import evidence, guest

RATIO = 4
"""A CPU is sold for 400 shares and 4 VCPU."""


def drawn_guests(draw: random.Random, cpus: int) -> Iterator[Domain]:
    """Yield guests that Placement accepts on a host with shares on the root."""
    node0, node1 = CpuSet(range(cpus // 2)), CpuSet(range(cpus // 2, cpus))
    sets = {
        "nodes": (node0, node1),
        "pool": (CpuSet(range(cpus)),),
        "pinned": tuple(CpuSet({cpu}) for cpu in range(cpus)),
        "mixed": (node0, node1, CpuSet(range(cpus)), CpuSet({0})),
    }
    kind = draw.choice(sorted(sets))
    shares, vcpus = 100 * RATIO * cpus, RATIO * cpus
    while shares and vcpus:
        # A node is filled before the next one: Nova's fit knows no weight.
        chosen = draw.choice(sets[kind][:1] * 2 + sets[kind])
        # Nova gives no server more vCPUs than a node has CPUs.
        count = min(vcpus, len(chosen), draw.choice((1, 1, 1, 2, 4)))
        per_vcpu = min(draw.choice((25, 50, 100, 200)), shares // count)
        if not per_vcpu:
            return
        yield guest(f"g{vcpus}", per_vcpu * count, *[chosen] * count)
        shares, vcpus = shares - per_vcpu * count, vcpus - count
        if draw.random() < 0.05:
            return


def drawn_host(seed: int) -> Evidence:
    draw = random.Random(seed)
    cpus = draw.choice((2, 4, 8))
    domains = list(drawn_guests(draw, cpus))
    inventories = {
        VCPU: Inventory(total=cpus, max_unit=cpus, allocation_ratio=RATIO),
        VCPU_SHARES: Inventory(total=100 * cpus, max_unit=100 * cpus, allocation_ratio=RATIO),
    }
    host, everything = evidence(shares=1, dedicated=CpuSet()), CpuSet(range(cpus))
    occupancy = replace(
        host.host,
        domains=tuple(domains),
        cpus=everything,
        shared_cpus=everything,
        inventories=inventories,
    )
    return replace(host, host=occupancy)


def about(domain: Domain, findings: list[Finding]) -> list[Finding]:
    """Return the findings about the CPUs of a guest, or about all CPUs."""
    cpus = CpuSet(cpu for each in domain.vcpu_sets for cpu in each or ())
    return [
        finding
        for finding in findings
        if finding.where == "host"
        or (
            finding.where.startswith("CPU ")
            and CpuSet.parse(finding.where.removeprefix("CPU "), where="") & cpus
        )
    ]


@pytest.mark.parametrize("number", range(100))
def test_no_guest_gets_less_than_is_due_without_a_finding_before_it_happens(number: int) -> None:
    host = drawn_host(SEED + number)
    dues, figures = evidence_dues(host), host.host.figures()
    findings = [*check_oversold(host), *check_overlaps(host)]
    for domain in host.host.domains:
        due = dues[domain.name]
        # What the kernel keeps of the sold CPUs is due: of a set that is sold full, 0.6 at least.
        assert due.cpus >= Fraction(6, 10) * due.sold, domain
        if figures[domain.name].floor < Fraction(9, 10) * due.cpus:
            assert about(domain, findings), (domain, due, figures[domain.name])


def test_the_draws_have_oversold_nodes() -> None:
    """Otherwise, the test above proves nothing."""
    oversold = [list(check_oversold(drawn_host(SEED + number))) for number in range(100)]
    assert sum(map(bool, oversold)) >= 20
