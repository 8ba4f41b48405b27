"""Whether the servers of a cloud have the CPUs that their tiers promise. Pure.

A server of a tier is promised the CPUs that its VCPU_SHARES stand for, and at most a CPU for each
vCPU. The floor and the entitlement of the server (:mod:`cpu_tiers.tools.tiers.entitlement`) are
compared with the promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from cpu_tiers.extra_specs.shares import Shares
from cpu_tiers.model.cpu_set import MAX_CPU
from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.cloud_model.cloud import Allocations, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import HostProviders
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus

UNTIERED_WEIGHT = DEFAULT_WEIGHT[2]
"""The weight of a guest without a tier: the default of the kernel in cgroup v2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedServer:
    """A server on a host.

    :param allocations: by provider uuid and resource class.
    :param tier: the name of the tier; empty without a tier.
    :param shares: the CPU shares of the flavor; ``None`` without a tier.
    """

    allocations: Allocations
    tier: str = ""
    shares: Shares | None = None

    @classmethod
    def resident(cls, allocations: Allocations) -> PlacedServer:
        """Return a server of which only the allocations are known.

        Its weight for each vCPU follows from its VCPU_SHARES.
        """
        vcpus = sum(amounts.get(VCPU, 0) for amounts in allocations.values())
        claimed = sum(amounts.get(VCPU_SHARES, 0) for amounts in allocations.values())
        if not claimed or not vcpus:
            return cls(allocations=allocations)
        shares = Shares(amount=Decimal(claimed) / vcpus, per_vcpu=True)
        return cls(allocations=allocations, shares=shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFloors:
    """The CPUs of the servers of a tier, on hosts that report VCPU_SHARES.

    :param servers: the number of servers.
    :param floor_kept: the number of servers whose floor is at least the promise.
    :param entitlement_kept: the number of servers whose entitlement is at least the promise.
    :param least_floor: the least floor, as a part of the promise; least over all servers.
    :param least_entitlement: the least entitlement, as a part of the promise.
    """

    servers: int
    floor_kept: int
    entitlement_kept: int
    least_floor: float
    least_entitlement: float

    @classmethod
    def of(cls, parts: Collection[tuple[Fraction, Fraction]]) -> TierFloors:
        """Return the floors of a tier.

        :param parts: the floor and the entitlement of each server, as parts of the promise.
        """
        floors, entitlements = zip(*parts, strict=True)
        return cls(
            servers=len(floors),
            floor_kept=sum(floor >= 1 for floor in floors),
            entitlement_kept=sum(each >= 1 for each in entitlements),
            least_floor=float(min(floors)),
            least_entitlement=float(min(entitlements)),
        )


def tier_floors(
    cloud: SimulatedCloud, servers: Iterable[PlacedServer]
) -> Mapping[str, TierFloors]:
    """Return the floors of each tier.

    :param servers: all servers of the cloud.
    """
    by_root = _servers_by_root(cloud, servers)
    parts: defaultdict[str, list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for host in cloud.hosts:
        if any(server.tier for server in by_root[host.root]):
            for tier, floor, entitlement in _Pools(host).parts(by_root[host.root]):
                parts[tier].append((floor, entitlement))
    return {tier: TierFloors.of(pairs) for tier, pairs in sorted(parts.items())}


def _servers_by_root(
    cloud: SimulatedCloud, servers: Iterable[PlacedServer]
) -> defaultdict[str, list[PlacedServer]]:
    by_root: defaultdict[str, list[PlacedServer]] = defaultdict(list)
    for server in servers:
        for root in {cloud.root_of(uuid) for uuid in server.allocations}:
            by_root[root or ""].append(server)
    return by_root


def _vcpus(servers: Iterable[PlacedServer], name: str) -> int:
    """Return the number of shared (``VCPU``) or dedicated (``PCPU``) vCPUs of servers."""
    return sum(a.get(name, 0) for s in servers for a in s.allocations.values())


class _Pools:
    """The pools of CPUs of a host: a pool for each provider of VCPU.

    A host of more CPUs or vCPUs than Linux can have, such as that of a fake driver, has no floors.
    """

    def __init__(self, host: HostProviders) -> None:
        self._pools: dict[str, frozenset[int]] = {}
        self._cpus = cpus = shares = 0
        for provider in host.tree:
            if stock := provider.stocks.get(VCPU):
                last = cpus + stock.inventory.total
                self._pools[provider.uuid] = frozenset(range(cpus, min(last, MAX_CPU + 2)))
                cpus = last
            if stock := provider.stocks.get(VCPU_SHARES):
                shares += int(stock.inventory.total * Fraction(stock.inventory.allocation_ratio))
        self._cpus = cpus
        self._cpus_per_share = Fraction(cpus, shares) if shares else None

    def parts(self, servers: Iterable[PlacedServer]) -> Iterable[tuple[str, Fraction, Fraction]]:
        """Yield the tier, the floor and the entitlement of servers, as parts of the promise."""
        servers = list(servers)
        cpus = max(self._cpus, _vcpus(servers, VCPU)) + _vcpus(servers, PCPU)
        if self._cpus_per_share is None or cpus > MAX_CPU + 1:
            return
        contenders: dict[str, Contender] = {}
        promises: dict[str, tuple[str, Fraction]] = {}
        for number, server in enumerate(servers):
            threads = self._threads(server.allocations)
            vcpus = sum(threads.values())
            if not vcpus:
                continue
            weight = UNTIERED_WEIGHT if server.shares is None else server.shares.weight(vcpus)
            contenders[str(number)] = Contender(weight=weight, threads=threads)
            if server.tier and server.shares is not None:
                promise = self._promise(server.shares, threads)
                if promise:
                    promises[str(number)] = server.tier, promise
        host = {"guests": Slice.of_guests(contenders, UNTIERED_WEIGHT)}
        floors, entitlements = floor_cpus(host), entitlement_cpus(host)
        for name, (tier, promise) in promises.items():
            floor, entitlement = floors[f"guests/{name}"], entitlements[f"guests/{name}"]
            yield tier, floor / promise, entitlement / promise

    def _threads(self, allocations: Allocations) -> dict[frozenset[int], int]:
        """Return the vCPUs of a server by their CPUs; a dedicated vCPU has a CPU of its own."""
        threads: dict[frozenset[int], int] = {}
        for uuid, amounts in allocations.items():
            if uuid in self._pools and amounts.get(VCPU):
                threads[self._pools[uuid]] = amounts[VCPU]
            for _ in range(amounts.get(PCPU, 0)):
                self._cpus += 1
                threads[frozenset([self._cpus])] = 1
        return threads

    def _promise(self, shares: Shares, threads: Mapping[frozenset[int], int]) -> Fraction:
        """Return the CPUs that a server is promised, of shared and of dedicated vCPUs."""
        pools = set(self._pools.values())
        shared = sum(number for cpus, number in threads.items() if cpus in pools)
        if not shared or self._cpus_per_share is None:
            return Fraction(0)
        dedicated = sum(threads.values()) - shared
        return dedicated + min(Fraction(shared), shares.requested(shared) * self._cpus_per_share)
