"""The amounts of all hosts of an answer of Placement.

nova-scheduler reads thousands of providers for each request: the loop over the providers reads
each field once and only collects the amounts, and the hosts that are built alike are added up
together. The formulas are those of ``best-fit`` and ``fragmentation``, see
``docs/reference/scores.rst``. Pure: summaries are not changed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.weights.forest import Summary
from cpu_tiers.weights.scale import Scale

SLIGHT = 0.1
"""Added to the used share of each class: a class that nobody uses yet weighs a little."""

Build = tuple[int | str, ...]
"""For each provider of a host, the number of its resource classes, and the classes."""


class HostTotals:
    """The capacity and the use of hosts, by resource class.

    :ivar hosts: the number of hosts.
    """

    def __init__(self) -> None:
        self.hosts = 0
        self._capacity: defaultdict[str, int] = defaultdict(int)
        self._used: defaultdict[str, int] = defaultdict(int)

    def add(self, summaries: Iterable[Summary], hosts: int, sign: int = 1) -> None:
        """Add the providers of hosts; remove the providers with ``sign=-1``.

        :param hosts: the number of hosts whose providers these are.
        """
        capacity, used = self._capacity, self._used
        for summary in summaries:
            for name, amount in summary["resources"].items():
                capacity[name] += sign * amount["capacity"]
                used[name] += sign * amount["used"]
        self.hosts += sign * hosts

    def add_amounts(self, name: str, capacity: int, used: int) -> None:
        """Add amounts of a resource class."""
        self._capacity[name] += capacity
        self._used[name] += used

    def scale(self, only_resources: Collection[str] = ()) -> Scale:
        """Return the scale of the hosts.

        :param only_resources: the resource classes that count; empty for all classes.
        """
        hosts = max(1, self.hosts)
        present = {
            name: total
            for name, total in self._capacity.items()
            if total > 0 and name != NUMA_SERVER and (not only_resources or name in only_resources)
        }
        shares = {name: min(1.0, self._used[name] / total) for name, total in present.items()}
        most = max(shares.values(), default=0.0) + SLIGHT
        return Scale(
            units={name: total / hosts for name, total in present.items()},
            weights={name: ((share + SLIGHT) / most) ** 2 for name, share in shares.items()},
        )


class HostAmounts:
    """The amounts of a host.

    :ivar positions: the uuid of each provider, with its number from 0.
    :ivar build: the items of the :data:`Build`.
    :ivar capacity: of each resource class of each provider, in the order of the build.
    :ivar free: capacity minus use, in the same order; negative if more is used than the capacity.
    """

    __slots__ = ("build", "capacity", "free", "positions")

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}
        self.build: list[int | str] = []
        self.capacity: list[int] = []
        self.free: list[int] = []


class AlikeHosts:
    """Hosts of the same build.

    :ivar hosts: by the uuid of the root provider.
    """

    def __init__(self, build: Build) -> None:
        self.build = build
        self.hosts: dict[str, HostAmounts] = {}

    @cached_property
    def capacity(self) -> Mapping[str, list[int]]:
        """The capacity of each host, by resource class."""
        return self._sums(host.capacity for host in self.hosts.values())

    @cached_property
    def free(self) -> Mapping[str, list[int]]:
        """The free amount of each host, by resource class."""
        return self._sums(host.free for host in self.hosts.values())

    def _sums(self, rows: Iterable[Sequence[int]]) -> dict[str, list[int]]:
        """Add the amounts of the providers of each host; a column has the amounts of all hosts."""
        names = [item for item in self.build if isinstance(item, str)]
        columns: dict[str, list[Sequence[int]]] = {}
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            columns.setdefault(name, []).append(column)
        return {
            name: list(map(sum, zip(*columns_of_class, strict=True)))
            for name, columns_of_class in columns.items()
        }


class AnsweredAmounts:
    """The amounts of all hosts of an answer.

    :param summaries: ``provider_summaries`` of Placement's answer.
    """

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._hosts = _read(summaries)
        builds: dict[Build, AlikeHosts] = {}
        equal_hosts, before = AlikeHosts(()), list[int | str]()
        for root, host in self._hosts.items():
            if host.build != before:
                before, build = host.build, tuple(host.build)
                equal_hosts = builds.setdefault(build, AlikeHosts(build))
            equal_hosts.hosts[root] = host
        self.alike: Collection[AlikeHosts] = builds.values()

    def roots(self) -> Collection[str]:
        """Return the root providers of the hosts, in the order of the answer."""
        return self._hosts

    def totals(self) -> HostTotals:
        """Return the capacity and the use of all hosts."""
        totals = HostTotals()
        totals.hosts = len(self._hosts)
        for equal_hosts in self.alike:
            for name, column in equal_hosts.capacity.items():
                capacity = sum(column)
                totals.add_amounts(name, capacity, capacity - sum(equal_hosts.free[name]))
        return totals


def _read(summaries: Mapping[str, Summary]) -> dict[str, HostAmounts]:
    """Return the amounts of each host, by the uuid of the root provider."""
    hosts: dict[str, HostAmounts] = {}
    host, before = HostAmounts(), None
    # Local names: this loop runs for every provider of every candidate host.
    positions, build, capacity, free = host.positions, host.build, host.capacity, host.free
    for uuid, summary in summaries.items():
        root = summary["root_provider_uuid"]
        if root != before:  # the providers of a tree mostly stand together, but need not
            before = root
            if root not in hosts:
                hosts[root] = HostAmounts()
            host = hosts[root]
            positions, build, capacity, free = host.positions, host.build, host.capacity, host.free
        positions[uuid] = len(positions)
        resources = summary["resources"]
        build.append(len(resources))
        build += resources
        for amount in resources.values():
            total = amount["capacity"]
            capacity.append(total)
            free.append(total - amount["used"])
    return hosts
