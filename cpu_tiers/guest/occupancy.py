"""The guests of a host, the CPUs that each is entitled to, and the effect of additional servers.

Pure.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.errors import FaultList
from cpu_tiers.guest.capacity import fitting_servers, requested_amounts
from cpu_tiers.guest.entitlement import Contender, Slice, fair_cpus, floor_cpus
from cpu_tiers.guest.tier import Tier
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.inventory import Inventory

MACHINES = "machine.slice"
"""The name of the cgroup of all guests, with systemd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """The CPUs that a guest gets while all its vCPUs want to run.

    :param floor: what the guest gets wherever the kernel has put the vCPUs.
    :param fair: what the guest gets if the kernel moves the vCPUs well, and all vCPUs of the host
        want to run.
    """

    floor: Fraction
    fair: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What each guest is entitled to, by name, and each additional server."""

    guests: Mapping[str, Entitlement]
    newcomer: Entitlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How many more servers of a tier fit, and how the CPUs are divided then.

    :param one: the division with one additional server; ``None`` if no server fits.
    :param all: the division with all ``more`` additional servers.
    """

    tier: Tier
    more: int
    one: Division | None = None
    all: Division | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """A host and its running guests.

    :param cpus: all CPUs of the host.
    :param shared_cpus: the CPUs over which shared vCPUs float.
    :param default_weight: the weight that the kernel gives a new cgroup.
    :param services: the cgroups that compete with ``machine.slice``.
    :param inventories: of VCPU and VCPU_SHARES; empty if no CPU is shared.
    :raises InvalidInput: two guests have the same name, or a vCPU may run on no CPU of the host.
    """

    domains: tuple[Domain, ...]
    cpus: CpuSet
    shared_cpus: CpuSet
    default_weight: int
    services: Mapping[str, Contender]
    inventories: Mapping[str, Inventory]

    def __post_init__(self) -> None:
        """Check the guests against the host."""
        faults = FaultList()
        for name, count in Counter(domain.name for domain in self.domains).items():
            if count > 1:
                faults.add(f"domain {name}", f"given {count} times", "give each domain once")
        for domain in self.domains:
            for cpus in set(domain.vcpu_sets):
                if not self.present(cpus):
                    given = f"a vCPU on CPU {cpus}, which the host does not have"
                    faults.add(f"domain {domain.name}", given, f"the host has {self.cpus}")
        faults.raise_if_any()

    def weight(self, domain: Domain) -> int:
        """Return the weight of a guest: of its cgroup, else of its XML, else the default."""
        # The weight of the cgroup is in force, even if somebody changed it behind libvirt.
        return domain.weight or domain.shares or self.default_weight

    def present(self, cpus: CpuSet | None) -> frozenset[int]:
        """Return the CPUs of a vCPU that the host has; a CPU set may name absent CPUs as well."""
        return self.cpus if cpus is None else self.cpus & cpus

    def entitlements(self) -> Mapping[str, Entitlement]:
        """Return what each guest is entitled to, by name."""
        return self._divide([]).guests

    def vcpu_floors(self) -> Mapping[str, tuple[Fraction, ...]]:
        """Return the floor of each vCPU of a guest, by the name of the guest."""
        return self._of_vcpus(floor_cpus(self._with_vcpus()))

    def vcpu_entitlements(self) -> Mapping[str, tuple[Entitlement, ...]]:
        """Return what each vCPU of a guest is entitled to, by the name of the guest."""
        host = self._with_vcpus()
        floors, fair = self._of_vcpus(floor_cpus(host)), self._of_vcpus(fair_cpus(host))
        return {
            name: tuple(
                Entitlement(floor=low, fair=high)
                for low, high in zip(floors[name], fair[name], strict=True)
            )
            for name in floors
        }

    def _with_vcpus(self) -> Mapping[str, Contender | Slice]:
        """Return the host with each guest as a slice of its vCPUs.

        The vCPUs of a guest with the same CPU set form a contender, with a weight in
        proportion to the number of vCPUs, as in the kernel.
        """
        guests = {
            domain.name: Slice(
                weight=self.weight(domain),
                members={
                    str(CpuSet(cpus)): Contender(weight=vcpus, threads={cpus: vcpus})
                    for cpus, vcpus in Counter(map(self.present, domain.vcpu_sets)).items()
                },
            )
            for domain in self.domains
        }
        machines = Slice(weight=self.default_weight, members=guests)
        return {**self.services, MACHINES: machines}

    def _of_vcpus(self, amounts: Mapping[str, Fraction]) -> Mapping[str, tuple[Fraction, ...]]:
        """Divide the amounts of the contenders of :meth:`_with_vcpus` by their vCPUs."""
        present = {
            domain.name: [self.present(cpus) for cpus in domain.vcpu_sets]
            for domain in self.domains
        }
        return {
            name: tuple(
                amounts[f"{MACHINES}/{name}/{CpuSet(cpus)}"] / sets.count(cpus) for cpus in sets
            )
            for name, sets in present.items()
        }

    def outlook(self, tier: Tier) -> Outlook:
        """Return how many more servers of a tier fit, and the division of CPUs with them."""
        more = self.fitting_servers(tier)
        if not more:
            return Outlook(tier=tier, more=0)
        return Outlook(
            tier=tier, more=more, one=self._beside(tier, 1), all=self._beside(tier, more)
        )

    def fitting_servers(self, tier: Tier) -> int:
        """Return how many more servers of a tier fit, by VCPU and VCPU_SHARES in Placement."""
        used = Counter[str]()
        for domain in self.domains:
            used.update(requested_amounts(domain, self.shared_cpus))
        return fitting_servers(tier.requested_amounts, self.inventories, used)

    def _beside(self, tier: Tier, count: int) -> Division:
        newcomer = Contender(weight=tier.weight, threads={self.shared_cpus: tier.vcpus})
        return self._divide([newcomer] * count)

    def _divide(self, newcomers: Collection[Contender]) -> Division:
        guests = {f"guest {domain.name}": self._contender(domain) for domain in self.domains}
        new = {f"new {i}": newcomer for i, newcomer in enumerate(newcomers)}
        machines = Slice(weight=self.default_weight, members={**guests, **new})
        host: dict[str, Contender | Slice] = {**self.services, MACHINES: machines}
        floors, fair = floor_cpus(host), fair_cpus(host)

        def entitlement(name: str) -> Entitlement:
            # A guest without a vCPU that is plugged in is no contender.
            path, none = f"{MACHINES}/{name}", Fraction()
            return Entitlement(floor=floors.get(path, none), fair=fair.get(path, none))

        return Division(
            guests={domain.name: entitlement(f"guest {domain.name}") for domain in self.domains},
            newcomer=entitlement("new 0"),
        )

    def _contender(self, domain: Domain) -> Contender:
        threads = Counter[frozenset[int]]()
        for cpus, vcpus in Counter(domain.vcpu_sets).items():
            threads[self.present(cpus)] += vcpus
        return Contender(weight=self.weight(domain), threads=threads)
