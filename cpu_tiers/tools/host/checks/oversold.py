"""Find a host whose guests weigh more than the host sells, before a guest is hurt. Pure.

A share is sold as a part of the CPUs of the host. The kernel keeps the part only while everything
that competes on the shared CPUs weighs no more than all shares that are for sale.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.host.checks.guest_weight import shared_weight
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeights:
    """What competes on the shared CPUs of a host, in shares.

    :param tiers: the weights of guests with a tier, and the shares of servers that are shut off.
    :param untiered: the weight of each guest without a tier.
    :param foreign: the weights of cgroups without a guest beside the guests.
    :param slices: the weights of slices that outweigh the guests, in shares of the guests. A slice
        that weighs no more than all guests together is on each host, and does not count.
    """

    tiers: Fraction
    untiered: tuple[Fraction, ...]
    foreign: Fraction
    slices: Fraction

    @property
    def total(self) -> Fraction:
        """Return all weights together."""
        return self.tiers + sum(self.untiered) + self.foreign + self.slices


def foreign_weights(cgroups: HostCgroups, guests: Fraction) -> tuple[Fraction, Fraction]:
    """Return the shares of cgroups beside the guests, and of slices that outweigh the guests.

    All that is in a slice has the weight of the slice together: a slice of three times the weight
    of the guests' slice weighs three times what is in the guests' slice.

    :param guests: the weight of all guests together.
    """
    foreign, slices = Fraction(sum(cgroups.beside.values())), Fraction(0)
    for path in cgroups.above_guests:
        if not cgroups.above[path]:  # cpu.idle, which is a finding of its own
            continue
        heavier = sum(cgroups.above[sibling] for sibling in cgroups.heavier_siblings(path))
        slices += (guests + foreign) * Fraction(heavier, cgroups.above[path])
    return foreign, slices


def shared_weights(evidence: Evidence) -> SharedWeights:
    """Return the competitors on the shared CPUs: a guest with the weight of its cgroup."""
    domains = evidence.host.domains
    with_tier = [domain for domain in domains if evidence.due_weight(domain) is not None]
    shut_off = _shut_off_shares(evidence)
    untiered = tuple(
        weight
        for domain in domains
        if domain not in with_tier and (weight := _shared_weight(evidence, domain))
    )
    running_tiers = sum((_shared_weight(evidence, domain) for domain in with_tier), Fraction(0))
    foreign = slices = Fraction(0)
    if evidence.cgroups:
        foreign, slices = foreign_weights(evidence.cgroups, running_tiers + sum(untiered))
    return SharedWeights(
        tiers=running_tiers + shut_off, untiered=untiered, foreign=foreign, slices=slices
    )


def _shut_off_shares(evidence: Evidence) -> int:
    """Return the shares of servers without a running guest, whose claim stays."""
    running = {domain.uuid for domain in evidence.host.domains}
    held = evidence.allocated.held if evidence.allocated else {}
    return sum(shares for consumer, shares in held.items() if consumer not in running)


def _shared_weight(evidence: Evidence, domain: Domain) -> Fraction:
    cgroup = evidence.cgroup(domain)
    weight = (cgroup and cgroup.weight) or evidence.host.weight(domain)
    return shared_weight(weight, domain.vcpu_sets, evidence.dedicated_cpus)


def check_oversold(evidence: Evidence) -> Iterator[Finding]:
    """Yield a host with tiers whose guests weigh more than the sold shares."""
    sale, weights = evidence.sale, shared_weights(evidence)
    if sale is None or not weights.tiers or weights.total <= sale.for_sale:
        return
    text = (
        f"{float(weights.total):.6g} shares compete for CPU time, and the host sells"
        f" {float(sale.for_sale):.6g}: on a busy host a share keeps"
        f" {float(sale.for_sale / weights.total):.1%} of what it is sold as"
    )
    yield Finding(kind=Kind.OVERSOLD, where="host", found=", ".join([text, *_parts(weights)]))


def _parts(weights: SharedWeights) -> Iterator[str]:
    yield f"servers with a tier have {float(weights.tiers):.6g}"
    if weights.untiered:
        yield f"{len(weights.untiered)} without a tier have {float(sum(weights.untiered)):.6g}"
    if weights.foreign:
        yield f"cgroups without a guest have {float(weights.foreign):.6g}"
    if weights.slices:
        yield f"slices beside all guests have {float(weights.slices):.6g}"
