"""The guests of a host, the CPUs of each guest, and the changes by more servers. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.errors import FaultList
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.tiers.contenders import EMULATOR, Contender, Divide, Slice, beside_emulators
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus
from cpu_tiers.tools.tiers.tier import Tier, requested_amounts

MACHINES = "machine.slice"
"""The name of the cgroup of all guests, with systemd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The CPUs that a guest gets while all its vCPUs want to run.

    :param floor: what the guest gets wherever the kernel has put the vCPUs.
    :param entitlement: what the guest gets if the kernel moves the vCPUs well, and all vCPUs of
        the host want to run.
    """

    floor: Fraction
    entitlement: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The figures of each guest, by name, and of each additional server."""

    guests: Mapping[str, Figures]
    newcomer: Figures


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

    :param shared_cpus: the CPUs over which shared vCPUs float.
    :param default_weight: the weight that the kernel gives a new cgroup.
    :param services: the cgroups that compete with ``machine.slice``.
    :param inventories: of VCPU and VCPU_SHARES; empty if no CPU is shared.
    :param emulator_overhead: the CPU time of the own threads of QEMU, divided by the CPU time of
        the vCPUs; 0 does not count these threads.
    :raises InvalidInput: two guests have the same name, or a vCPU may run on no CPU of the host.
    """

    domains: tuple[Domain, ...]
    cpus: CpuSet
    shared_cpus: CpuSet
    default_weight: int
    services: Mapping[str, Contender]
    inventories: Mapping[str, Inventory]
    emulator_overhead: Fraction = Fraction(0)

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

    def figures(self) -> Mapping[str, Figures]:
        """Return the floor and the entitlement of each guest, by name."""
        return self._divide([]).guests

    def vcpu_floors(self) -> Mapping[str, tuple[Fraction, ...]]:
        """Return the floor of each vCPU of a guest, by the name of the guest."""
        guests = {domain.name: self._slice(*self._parts(domain)) for domain in self.domains}
        machines = Slice.of_guests(guests, self.default_weight)
        host: dict[str, Contender | Slice] = {**self.services, MACHINES: machines}
        amounts = self._amounts(host, floor_cpus)
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

    def _slice(
        self, weight: int, threads: Mapping[frozenset[int], int], emulator_cpus: frozenset[int]
    ) -> Slice:
        """Return a guest as a slice of its vCPUs, and of the own threads of QEMU if they count.

        The vCPUs of a guest with the same CPU set form a contender, with a weight in
        proportion to the number of vCPUs, as in the kernel.
        """
        members = {
            str(CpuSet(cpus)): Contender(weight=vcpus, threads={cpus: vcpus})
            for cpus, vcpus in threads.items()
        }
        if self.emulator_overhead and members:
            members[EMULATOR] = Contender(weight=1, threads={emulator_cpus: 1})
        return Slice(weight=weight, members=members)

    def _amounts(
        self, host: Mapping[str, Contender | Slice], divide: Divide
    ) -> Mapping[str, Fraction]:
        if self.emulator_overhead:
            return beside_emulators(host, self.emulator_overhead, divide)
        return divide(host)

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
        cpus = frozenset(self.shared_cpus)
        newcomer = self._member(tier.weight, {cpus: tier.vcpus}, cpus)
        return self._divide([newcomer] * count)

    def _divide(self, newcomers: Collection[Contender | Slice]) -> Division:
        guests = {
            f"guest {domain.name}": self._member(*self._parts(domain)) for domain in self.domains
        }
        new = {f"new {i}": newcomer for i, newcomer in enumerate(newcomers)}
        machines = Slice.of_guests({**guests, **new}, self.default_weight)
        host: dict[str, Contender | Slice] = {**self.services, MACHINES: machines}
        floors, entitlements = (
            self._of_guests(host, divide) for divide in (floor_cpus, entitlement_cpus)
        )

        def figures(name: str) -> Figures:
            # A guest without a vCPU that is plugged in is no contender.
            return Figures(floor=floors[name], entitlement=entitlements[name])

        return Division(
            guests={domain.name: figures(f"guest {domain.name}") for domain in self.domains},
            newcomer=figures("new 0"),
        )

    def _of_guests(
        self, host: Mapping[str, Contender | Slice], divide: Divide
    ) -> Mapping[str, Fraction]:
        """Return the CPUs of each guest, by its name; 0 for a guest without vCPUs."""
        amounts = defaultdict[str, Fraction](Fraction)
        for path, amount in self._amounts(host, divide).items():
            if path.startswith(f"{MACHINES}/"):
                amounts[path.split("/")[1]] += amount
        return amounts

    def _member(
        self, weight: int, threads: Mapping[frozenset[int], int], emulator_cpus: frozenset[int]
    ) -> Contender | Slice:
        if self.emulator_overhead:
            return self._slice(weight, threads, emulator_cpus)
        return Contender(weight=weight, threads=threads)

    def _parts(self, domain: Domain) -> tuple[int, Mapping[frozenset[int], int], frozenset[int]]:
        """Return the weight of a guest, the number of its vCPUs by their CPUs, and QEMU's CPUs.

        Without ``<emulatorpin>``, the own threads of QEMU run on the CPUs of the vCPUs.
        """
        threads = Counter(map(self.present, domain.vcpu_sets))
        pinned = self.present(domain.emulator_set) if domain.emulator_set else frozenset[int]()
        return self.weight(domain), threads, pinned or frozenset[int]().union(*threads)


def fitting_servers(
    amounts: Mapping[str, int], inventories: Mapping[str, Inventory], used: Mapping[str, int]
) -> int:
    """Return how many more servers with these requested amounts fit.

    :param amounts: at least one of the amounts must not be 0.
    :param used: the amounts that are allocated already.
    """
    # A guest without shared vCPUs or shares does not request the class at all.
    amounts = {name: amount for name, amount in amounts.items() if amount}
    if any(name not in inventories for name in amounts):
        return 0
    if any(inventories[name].units.refusing(amount) for name, amount in amounts.items()):
        return 0
    unused = {name: inventories[name].capacity - used.get(name, 0) for name in amounts}
    return max(0, min(unused[name] // amount for name, amount in amounts.items()))
