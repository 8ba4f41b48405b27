"""The guests of a host, what each is guaranteed, and what more guests would change.

Pure.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.errors import FaultList
from cpu_tiers.guest.capacity import claim_of, room_for
from cpu_tiers.guest.entitlement import Contender, Slice, guaranteed_cpus
from cpu_tiers.guest.tier import Tier
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.inventory import Inventory

MACHINES = "machine.slice"
"""The cgroup of all guests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The CPUs that each guest gets, by name, and what each newcomer gets."""

    guests: Mapping[str, Fraction]
    newcomer: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How many more servers of a tier fit, beside one of them, and beside all of them."""

    tier: Tier
    more: int
    one: Division | None = None
    all: Division | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """A host and the guests that run on it.

    :param cpus: all of the host.
    :param shared_cpus: those that shared vCPUs float over.
    :param default_weight: of a cgroup to which nobody gave one.
    :param services: what competes with ``machine.slice``.
    :param inventories: VCPU and VCPU_SHARES, empty where no CPU is shared.
    :raises InvalidInput: two guests of one name, or a vCPU that has no CPU here.
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
                faults.add(f"domain {name}", f"given {count} times", "a host has it once")
        for domain in self.domains:
            for cpus in set(domain.vcpu_sets):
                if not self._present(cpus):
                    given = f"a vCPU on CPU {cpus}, which the host does not have"
                    faults.add(f"domain {domain.name}", given, f"the host has {self.cpus}")
        faults.raise_if_any()

    def weight(self, domain: Domain) -> int:
        """Return the weight of a guest: its cgroup's, else its XML's, else the default."""
        return domain.weight or domain.shares or self.default_weight

    def guaranteed(self) -> Mapping[str, Fraction]:
        """Return the CPUs that each guest gets while all want to run, by name."""
        return self._divide([]).guests

    def guaranteed_vcpus(self) -> Mapping[str, tuple[Fraction, ...]]:
        """Return the CPUs that each vCPU of a guest gets while all want to run, by name."""
        present = {
            domain.name: [self._present(cpus) for cpus in domain.vcpu_sets]
            for domain in self.domains
        }
        guests = {
            domain.name: Slice(
                weight=self.weight(domain),
                members={
                    str(CpuSet(cpus)): Contender(weight=vcpus, threads={cpus: vcpus})
                    for cpus, vcpus in Counter(present[domain.name]).items()
                },
            )
            for domain in self.domains
        }
        machines = Slice(weight=self.default_weight, members=guests)
        granted = guaranteed_cpus({**self.services, MACHINES: machines})
        return {
            name: tuple(
                granted[f"{MACHINES}/{name}/{CpuSet(cpus)}"] / sets.count(cpus) for cpus in sets
            )
            for name, sets in present.items()
        }

    def outlook(self, tier: Tier) -> Outlook:
        """Return what more servers of a tier would get, and leave to the guests."""
        more = self.room_for(tier)
        if not more:
            return Outlook(tier=tier, more=0)
        return Outlook(
            tier=tier, more=more, one=self._beside(tier, 1), all=self._beside(tier, more)
        )

    def room_for(self, tier: Tier) -> int:
        """Return how many more servers of a tier fit, by what Placement counts."""
        used = Counter[str]()
        for domain in self.domains:
            used.update(claim_of(domain, self.shared_cpus))
        return room_for(tier.claim, self.inventories, used)

    def _beside(self, tier: Tier, count: int) -> Division:
        newcomer = Contender(weight=tier.weight, threads={self.shared_cpus: tier.vcpus})
        return self._divide([newcomer] * count)

    def _divide(self, newcomers: Collection[Contender]) -> Division:
        guests = {f"guest {domain.name}": self._contender(domain) for domain in self.domains}
        new = {f"new {i}": newcomer for i, newcomer in enumerate(newcomers)}
        machines = Slice(weight=self.default_weight, members={**guests, **new})
        granted = guaranteed_cpus({**self.services, MACHINES: machines})

        def cpus(name: str) -> Fraction:
            return granted.get(f"{MACHINES}/{name}", Fraction())  # it may have no vCPU

        return Division(
            guests={domain.name: cpus(f"guest {domain.name}") for domain in self.domains},
            newcomer=cpus("new 0"),
        )

    def _contender(self, domain: Domain) -> Contender:
        threads = Counter[frozenset[int]]()
        for cpus, vcpus in Counter(domain.vcpu_sets).items():
            threads[self._present(cpus)] += vcpus
        return Contender(weight=self.weight(domain), threads=threads)

    def _present(self, cpus: CpuSet | None) -> frozenset[int]:
        return self.cpus if cpus is None else self.cpus & cpus
