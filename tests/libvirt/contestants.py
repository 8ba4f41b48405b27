"""Guests that compete for CPUs, and the floor and the entitlement of each guest."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.tools.libvirt.domain import parse_domain, write_domain
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus

SERVICE = "service"
"""What competes with all guests together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A guest, and the vCPUs that want to run.

    :param asleep: vCPUs that do not want to run.
    :param busy_emulator: whether QEMU itself is as busy as a vCPU.
    """

    guest: Guest
    asleep: frozenset[int] = frozenset()
    busy_emulator: bool = False

    @property
    def name(self) -> str:
        """Return the name of the guest."""
        return self.guest.name

    @property
    def awake(self) -> list[int]:
        """Return the vCPUs that want to run."""
        return [vcpu for vcpu in range(self.guest.flavor.vcpus) if vcpu not in self.asleep]

    def contender(self, default_weight: int) -> Contender:
        """Return the contender of the guest, from the XML that cpu-tiers writes."""
        domain = parse_domain(write_domain(self.guest).encode(), where=self.name)
        threads = [domain.vcpu_sets[vcpu] for vcpu in self.awake]
        if self.busy_emulator:
            threads.append(domain.emulator_set or domain.vcpu_sets[0])
        return Contender(
            weight=domain.shares or default_weight, threads=Counter(filter(None, threads))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Guests that compete.

    :param service: CPUs of a busy thread in a cgroup beside that of all guests,
        with the weight that this one has.
    """

    title: str
    contestants: tuple[Contestant, ...]
    service: frozenset[int] = frozenset()

    @property
    def cpus(self) -> frozenset[int]:
        """Return the CPUs on which the guests and the service may run."""
        contenders = self.contenders(default_weight=1).values()
        sets = [cpus for contender in contenders for cpus in contender.threads]
        return self.service.union(*sets)

    def contenders(self, default_weight: int) -> dict[str, Contender]:
        """Return the guests that want to run, by name."""
        contenders = {
            contestant.name: contestant.contender(default_weight)
            for contestant in self.contestants
        }
        return {name: contender for name, contender in contenders.items() if contender.threads}

    def entitlements(self, default_weight: int) -> dict[str, float]:
        """Return the entitlement of each, in CPUs.

        :param default_weight: of a guest without a tier: 1024 in cgroup v1, 100 in v2.
        """
        return self._by_name(entitlement_cpus(self._host(default_weight)))

    def floors(self, default_weight: int) -> dict[str, float]:
        """Return the floor of each, in CPUs."""
        return self._by_name(floor_cpus(self._host(default_weight)))

    def emulated_floors(self, default_weight: int) -> dict[str, float]:
        """Return the floor of each, in CPUs, if every QEMU emulates its guest.

        The main thread of such a QEMU sometimes wants to run and sometimes sleeps, beside the
        vCPUs. The floor is the least of all combinations.
        """
        least = dict.fromkeys((contestant.name for contestant in self.contestants), inf)
        choices = ((True,) if each.busy_emulator else (False, True) for each in self.contestants)
        for busy in product(*choices):
            pairs = zip(self.contestants, busy, strict=True)
            contestants = tuple(replace(each, busy_emulator=own) for each, own in pairs)
            floors = replace(self, contestants=contestants).floors(default_weight)
            least = {name: min(floor, floors[name]) for name, floor in least.items()}
        return least

    def _host(self, default_weight: int) -> dict[str, Contender | Slice]:
        host: dict[str, Contender | Slice] = {
            "machine": Slice.of_guests(self.contenders(default_weight), default_weight)
        }
        if self.service:
            host[SERVICE] = Contender(weight=default_weight, threads={self.service: 1})
        return host

    def _by_name(self, granted: Mapping[str, Fraction]) -> dict[str, float]:
        cpus = {path.removeprefix("machine/"): float(amount) for path, amount in granted.items()}
        return {contestant.name: 0.0 for contestant in self.contestants} | cpus
