"""The CPUs that shares of a host are sold as, and the part that the kernel keeps. Pure.

``docs/reference/entitlement.rst`` has the formulas and the proof.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.model.providers import Excess
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT
from cpu_tiers.tools.tiers.floor import floor_cpus

_OF_A_CORE, _OF_A_THREAD = Fraction(1, 5), Fraction(1, 3)


def class_cpus(*, has_threads: bool) -> Fraction:
    """Return what a vCPU of the class V has of a host CPU in more than 99 % of the time.

    SCS-0100: a fifth of a core; a third of a thread on a host with several threads for each core,
    whose CPUs are threads.
    """
    return _OF_A_THREAD if has_threads else _OF_A_CORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """The shares that a host sells for its shared CPUs.

    :param cpus: the number of shared host CPUs.
    :param shares: the VCPU_SHARES of these CPUs, with the reserved shares.
    :param has_threads: whether the CPUs are threads, of which a core has several.
    :param reserved: the shares of these that nobody buys: the part of the CPUs for processes of
        the host, or for QEMU. So a reserved share makes no other share larger.
    """

    cpus: int
    shares: Fraction
    reserved: Fraction = Fraction(0)
    has_threads: bool = False

    @classmethod
    def of(cls, inventories: Mapping[str, Inventory]) -> "Sale | None":
        """Return the sale of inventories of VCPU and VCPU_SHARES; ``None`` if nothing is sold."""
        return cls.of_tree([inventories])

    @classmethod
    def of_tree(cls, providers: Iterable[Mapping[str, Inventory]]) -> "Sale | None":
        """Return the sale of a host, from the inventories of its providers, such as NUMA nodes."""
        listed = tuple(providers)
        if not any(VCPU_SHARES in inventories for inventories in listed):
            return None  # most providers of a large cloud
        cpus = sum(inventories[VCPU].total for inventories in listed if VCPU in inventories)
        for_shares = [each[VCPU_SHARES] for each in listed if VCPU_SHARES in each]
        shares = sum(map(_whole, for_shares), Fraction(0))
        capacity = sum(inventory.capacity for inventory in for_shares)
        if not cpus or not shares:
            return None
        return cls(cpus=cpus, shares=shares, reserved=shares - capacity)

    @property
    def for_sale(self) -> Fraction:
        """Return the shares that servers can buy: the capacity in Placement."""
        return self.shares - self.reserved

    @property
    def cpus_per_share(self) -> Fraction:
        """Return the CPUs that a share is sold as."""
        return self.cpus / self.shares

    @property
    def for_sale_per_cpu(self) -> Fraction:
        """Return the shares that servers can buy of each CPU."""
        return self.for_sale / self.cpus

    def on(self, cpus: int) -> "Sale":
        """Return the sale of some of the CPUs, such as a NUMA node: their part of the shares."""
        part = Fraction(cpus, self.cpus)
        return replace(self, cpus=cpus, shares=self.shares * part, reserved=self.reserved * part)

    @property
    def class_cpus(self) -> Fraction:
        """Return what a vCPU of the class V has of a CPU."""
        return class_cpus(has_threads=self.has_threads)

    def sold(self, amount: Fraction | int, vcpus: int) -> Fraction:
        """Return the CPUs that shares are sold as: at most one for each shared vCPU."""
        return min(Fraction(vcpus), amount * self.cpus_per_share)

    def promised(
        self, amount: int, vcpus: int, default_weight: int = DEFAULT_WEIGHT[2]
    ) -> Fraction:
        """Return what the kernel keeps of the sold CPUs while the host is sold full.

        It is the floor of the server beside servers with all other shares of the host, whatever
        flavors these servers have.

        :param vcpus: the shared vCPUs of the server.
        :param default_weight: the weight that the kernel gives a new cgroup.
        """
        cpus = frozenset(range(self.cpus))
        guests = {"server": Contender(weight=max(1, amount), threads={cpus: vcpus})}
        # As many threads as CPUs load all CPUs evenly: no other division of the shares leaves
        # less for the server.
        if others := int(self.shares) - amount if self.shares > amount else 0:
            guests["others"] = Contender(weight=others, threads={cpus: self.cpus})
        machines = Slice.of_guests(guests, default_weight)
        return min(self.sold(amount, vcpus), floor_cpus({"": machines})["/server"])


def _whole(shares: Inventory) -> Fraction:
    """Return the capacity of an inventory, with that of its reserved amount."""
    free = shares.total - shares.reserved
    return shares.capacity * Fraction(shares.total, free) if free > 0 else Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShares:
    """The shares of a host and of its child providers, and the excess of allocations there.

    :param capacity: ``None`` if the host reports no VCPU_SHARES.
    :param held: the shares that each consumer holds, by the uuid of the consumer; 0 for a consumer
        that holds only other resources of the host.
    :param sale: what the inventories of the host sell; ``None`` without VCPU or VCPU_SHARES.
    :param excesses: the resource classes, of any kind, with more allocated than the capacity.
    :param elsewhere: the guests that hold nothing of the host, by the uuid, with the names of the
        providers of which they hold something.
    """

    capacity: int | None
    held: Mapping[str, int]
    sale: Sale | None = None
    excesses: tuple[Excess, ...] = ()
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
