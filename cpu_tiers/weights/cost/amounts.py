"""Reads the amounts of all providers of Placement's answer, each field once.

nova-scheduler reads thousands of providers for each request: the loop over the providers only
collects the amounts, and the hosts that are built alike are added up together. Pure: summaries are
not changed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from cpu_tiers.weights.cost.packing import HostTotals
from cpu_tiers.weights.tree import Summary

Build = tuple[int | str, ...]
"""For each provider of a host, the number of its resource classes, and the classes."""


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
    def capacity(self) -> Mapping[str, list[Sequence[int]]]:
        """The capacity by resource class: for each provider, the amounts of all hosts."""
        return self._columns(host.capacity for host in self.hosts.values())

    @cached_property
    def free(self) -> Mapping[str, list[Sequence[int]]]:
        """The free amounts by resource class: for each provider, the amounts of all hosts."""
        return self._columns(host.free for host in self.hosts.values())

    def _columns(self, rows: Iterable[Sequence[int]]) -> dict[str, list[Sequence[int]]]:
        names = [item for item in self.build if isinstance(item, str)]
        columns: dict[str, list[Sequence[int]]] = {}
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            columns.setdefault(name, []).append(column)
        return columns


class AnsweredAmounts:
    """The amounts of all hosts of an answer.

    :param summaries: ``provider_summaries`` of Placement's answer.
    """

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._hosts = _read(summaries)
        builds: dict[Build, AlikeHosts] = {}
        alike, before = AlikeHosts(()), list[int | str]()
        for root, host in self._hosts.items():
            if host.build != before:
                before, build = host.build, tuple(host.build)
                alike = builds.setdefault(build, AlikeHosts(build))
            alike.hosts[root] = host
        self.alike: Collection[AlikeHosts] = builds.values()

    def roots(self) -> Collection[str]:
        """Return the root providers of the hosts, in the order of the answer."""
        return self._hosts

    def totals(self) -> HostTotals:
        """Return the capacity and the use of all hosts."""
        totals = HostTotals()
        totals.hosts = len(self._hosts)
        for alike in self.alike:
            for name, columns in alike.capacity.items():
                capacity, free = sum(map(sum, columns)), sum(map(sum, alike.free[name]))
                totals.add_amounts(name, capacity, capacity - free)
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
