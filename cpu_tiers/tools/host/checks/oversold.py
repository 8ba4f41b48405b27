"""Find a host whose guests weigh more than the host sells, before a guest is hurt. Pure.

A share is sold as a part of the CPUs of the host. The kernel keeps the part only while everything
that competes on the shared CPUs weighs no more than all shares that are for sale. The same holds
for each set of CPUs on which guests compete, such as a NUMA node, and its part of the shares.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.host.checks.guest_weight import shared_vcpus
from cpu_tiers.tools.tiers.cpu_sets import (
    ContestedCpus,
    SharedVcpus,
    contested_cpus,
    least_leaving,
)
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.sold import Sale


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
    vcpus = _shared_vcpus(evidence)
    running_tiers = sum((each.weight for each in vcpus if each.has_tier), Fraction(0))
    weights = defaultdict[str, Fraction](Fraction)
    for each in vcpus:
        if not each.has_tier:
            weights[each.guest] += each.weight
    untiered = tuple(weight for weight in weights.values() if weight)
    foreign = slices = Fraction(0)
    if evidence.cgroups:
        foreign, slices = foreign_weights(evidence.cgroups, running_tiers + sum(untiered))
    return SharedWeights(
        tiers=running_tiers + _shut_off_shares(evidence),
        untiered=untiered,
        foreign=foreign,
        slices=slices,
    )


def _shut_off_shares(evidence: Evidence) -> int:
    """Return the shares of servers without a running guest, whose claim stays."""
    running = {domain.uuid for domain in evidence.host.domains}
    held = evidence.allocated.held if evidence.allocated else {}
    return sum(shares for consumer, shares in held.items() if consumer not in running)


def _shared_vcpus(evidence: Evidence) -> list[SharedVcpus]:
    """Return the shared vCPUs of all guests, with the weights of the cgroups of the guests."""
    host, vcpus = evidence.host, list[SharedVcpus]()
    weights = evidence.cgroups.competing_weights() if evidence.cgroups else {}
    for domain in host.domains:
        weight = weights.get(domain.uuid or "") or host.weight(domain)
        vcpus += shared_vcpus(domain, weight, host.cpus, evidence.dedicated_cpus)
    return vcpus


def check_oversold(evidence: Evidence) -> Iterator[Finding]:
    """Yield a host, and each set of its CPUs, whose guests weigh more than its sold shares."""
    sale = evidence.sale
    if sale is None:
        return
    weights = shared_weights(evidence)
    if weights.tiers and weights.total > sale.for_sale:
        text = (
            f"{float(weights.total):.6g} shares compete for CPU time, and the host sells"
            f" {float(sale.for_sale):.6g}: on a busy host a share keeps"
            f" {float(sale.for_sale / weights.total):.1%} of what it is sold as"
        )
        yield Finding(kind=Kind.OVERSOLD, where="host", found=", ".join([text, *_parts(weights)]))
    domains = {domain.name: domain for domain in evidence.host.domains}
    with_due_weights = replace(evidence, cgroups=None)
    legal = {each.cpus: each for each in oversold_sets(_shared_vcpus(with_due_weights), sale)}
    for contested in oversold_sets(_shared_vcpus(evidence), sale):
        # Nobody has to leave for a weight that somebody changed.
        leaving = least_leaving(legal[contested.cpus]) if contested.cpus in legal else ()
        yield from _of_set(contested, leaving, domains, evidence.step)


def oversold_sets(vcpus: Collection[SharedVcpus], sale: Sale) -> Iterator[ContestedCpus]:
    """Yield the oversold sets of CPUs of a host, except for all its shared CPUs together."""
    for contested in contested_cpus(vcpus, sale.for_sale_per_cpu):
        if contested.is_oversold and len(contested.cpus) < sale.cpus:
            yield contested


_WITH_NODES = (
    "; report the NUMA nodes of hosts for servers with NUMA nodes or huge pages ([compute]"
    " enable_numa_reporting_to_placement = true), so that Placement counts the shares of each node"
)
_WITHOUT_NODES = (
    "; keep servers of a tier with NUMA nodes or huge pages on hosts with a single NUMA node"
)


def _of_set(
    contested: ContestedCpus, leaving: Sequence[str], domains: Mapping[str, Domain], step: Step
) -> Iterator[Finding]:
    """Yield the finding of an oversold set of CPUs, and one for each guest that should leave."""
    where = f"CPU {contested.cpus}"
    untiered = sum(each.weight for each in contested.members if not each.has_tier)
    beside = f", guests without a tier have {float(untiered):.6g} of that" if untiered else ""
    text = (
        f"{float(contested.weight):.6g} shares compete on these CPUs, whose part of the shares"
        f" that the host sells is {float(contested.shares):.6g}: while all are busy, a share keeps"
        f" {float(contested.kept):.1%} of what it is sold as{beside}"
    )
    if not leaving:
        yield Finding(kind=Kind.OVERSOLD, where=where, found=text)
        return
    do = f"migrate {' and '.join(leaving)} to other hosts (cpu-tiers plan relieve --audit)"
    if step < Step.NUMA:
        do += _WITH_NODES if step.has_driver else _WITHOUT_NODES
    yield Finding(kind=Kind.OVERSOLD, where=where, found=text, do=do)
    for name in leaving:
        text = f"{where} would be sold no more than its part without {' and '.join(leaving)}"
        guest = Finding.of_guest(Kind.OVERSOLD, domains[name], text)
        yield replace(
            guest, do="migrate the guest to another host (cpu-tiers plan relieve --audit)"
        )


def _parts(weights: SharedWeights) -> Iterator[str]:
    yield f"servers with a tier have {float(weights.tiers):.6g}"
    if weights.untiered:
        yield f"{len(weights.untiered)} without a tier have {float(sum(weights.untiered)):.6g}"
    if weights.foreign:
        yield f"cgroups without a guest have {float(weights.foreign):.6g}"
    if weights.slices:
        yield f"slices beside all guests have {float(weights.slices):.6g}"
