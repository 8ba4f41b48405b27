"""The sold CPUs of a server of each tier on each kind of host, and the hosts that keep less. Pure.

Placement tells the claims and the inventories. It does not tell the weight of a server without
a tier, which the version of cgroup on the host decides.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from cpu_tiers.model.cpu_set import MAX_CPU
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.sold.sold import SoldCloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT


class TierPromise(NamedTuple):
    """What a server of the flavor that stands for a tier gets on the hosts of a kind, in CPUs.

    :param hosts: how many hosts, or NUMA nodes that report shares, have so many CPUs, and sell
        shares for the same part of a CPU.
    :param cpus: the shared CPUs of each of these hosts or nodes.
    :param promised: what the kernel keeps of the sold CPUs on CPUs that are sold full, with the
        version of cgroup that keeps less: Placement does not tell the version of a host.
    :param vcpus: the vCPUs of the server.
    :param class_cpus: what a vCPU of the class V of SCS-0100 has of a CPU.
    """

    tier: str
    hosts: int
    cpus: int
    sold: Fraction
    promised: Fraction
    vcpus: int
    class_cpus: Fraction

    @property
    def has_class(self) -> bool:
        """Tell whether the promise proves the class V of SCS-0100."""
        return self.promised >= self.class_cpus * self.vcpus


def tier_promises(rooms: Iterable[TierRoom], cloud: SoldCloud) -> Iterator[TierPromise]:
    """Yield what each tier is sold on each kind of host, the most frequent kind first.

    A host of more CPUs than Linux can have, such as the host of a fake driver, keeps no promise.
    """
    sales = Counter(sale for sale in cloud.sales.values() if sale.cpus <= MAX_CPU + 1)
    kinds = sales.most_common()
    for room in rooms:
        if room.shares and room.vcpus:
            for sale, hosts in kinds:
                sold = sale.sold(room.shares, room.vcpus)
                kept = min(
                    sale.promised(room.shares, room.vcpus, default)
                    for default in DEFAULT_WEIGHT.values()
                )
                of_class = sale.class_cpus
                yield TierPromise(room.tier, hosts, sale.cpus, sold, kept, room.vcpus, of_class)


def uncounted_nodes(rooms: Iterable[TierRoom], cloud: SoldCloud) -> tuple[list[str], int]:
    """Return the flavors whose servers stand on NUMA nodes, and the hosts that count no node.

    :returns: the names of the flavors, and the number of hosts that report their shares as one
        amount. Placement does not tell on which node of such a host a server stands.
    """
    as_one = sum(host == provider for host, provider in cloud.sales)
    return [name for room in rooms for name in room.on_nodes], as_one


class OversoldHost(NamedTuple):
    """A host, or a NUMA node that reports shares, whose servers weigh more than it sells.

    :param provider: the root provider of the host, or the node.
    :param shares: what the provider sells.
    :param sold: the shares that servers with a tier have.
    :param untiered: the number of servers without a tier that have shared CPUs.
    """

    host: str
    provider: str
    shares: Fraction
    sold: int
    untiered: int

    def kept(self, version: int) -> Fraction:
        """Return the part of the sold CPUs that is left with a version of cgroup, at most 1."""
        weights = self.sold + self.untiered * DEFAULT_WEIGHT[version]
        return min(Fraction(1), self.shares / weights)


def oversold_hosts(cloud: SoldCloud) -> list[OversoldHost]:
    """Return the hosts and nodes with tiers that keep less than is sold with a version of cgroup.

    A host is left out if it keeps everything with version 1, in which a server weighs most. The
    hosts with the least kept part come first.
    """
    sold, vcpus = Counter[str](), dict[str, set[str]]()
    with_shares = dict[str, set[str]]()
    for part in cloud.parts:
        if part.resource_class == VCPU_SHARES and part.amount:
            sold[part.provider] += part.amount
            with_shares.setdefault(part.provider, set()).add(part.consumer)
        elif part.resource_class == VCPU and part.amount:
            vcpus.setdefault(part.provider, set()).add(part.consumer)
    hosts = [
        OversoldHost(host, name, sale.for_sale, sold[name], len(vcpus.get(name, set()) - tiered))
        for (host, name), sale in cloud.sales.items()
        if (tiered := with_shares.get(name, set()))
    ]
    below = [host for host in hosts if host.kept(1) < 1]
    return sorted(below, key=lambda host: host.kept(1))
