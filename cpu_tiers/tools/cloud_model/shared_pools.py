"""The pools of hosts by their states: of the pools in a state, a query needs only the first pools.

Thousands of pools of an aggregate give each host thousands of candidates. Pools in the same state
replace each other in candidates, and no score of a host depends on its pools. So the first of the
best candidates has the first pools of each state, and no candidate has more pools of a state than
its query has amounts for pools. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.tools.cloud_model.providers import (
    OF_HOSTS,
    HostProviders,
    Layouts,
    SimulatedProvider,
    Stock,
)


class PoolNeeds:
    """What a query asks of pools.

    :ivar most: no candidate has more pools; at least 1.
    """

    def __init__(self, groups: Sequence[RequestGroup]) -> None:
        slots = (
            len(group.resources.keys() - OF_HOSTS) if group.resources else 1 for group in groups
        )
        self.most = max(1, sum(slots))  # a sharing provider that is no pool is always kept
        self._amounts: dict[str, list[int]] = {}
        for group in groups:
            for name, amount in group.resources.items():
                self._amounts.setdefault(name, []).append(amount)
        self._traits = frozenset[str]().union(
            *(group.required.union(group.forbidden, *group.any_of) for group in groups)
        )
        self._aggregates = frozenset[str]().union(
            *(names for g in groups for names in (*g.member_of, g.not_member_of))
        )
        self._in_trees = {group.in_tree for group in groups}

    def state(self, pool: SimulatedProvider) -> object:
        """Return the state of a pool: the query cannot tell pools in the same state apart."""
        return (
            pool.state.traits & self._traits,
            pool.state.aggregates & self._aggregates,
            pool.uuid if pool.uuid in self._in_trees else "",
            *[_room(amounts, pool.stocks.get(name)) for name, amounts in self._amounts.items()],
        )


def _room(amounts: Sequence[int], stock: Stock | None) -> object:
    """Return which amounts of a class an inventory allows, and the room for all of them."""
    if stock is None:
        return None
    units = stock.inventory.units
    allowed = tuple([not units.refusing(amount) for amount in amounts])
    room = min(stock.free, units.max_unit, sum(amounts))
    return allowed, room if room >= min(amounts) else 0


class SharedPools:
    """The providers that other trees share with a host, by their states for a query.

    :param shared: in the order of the host.
    :param pools: the uuids of providers that are pools; others keep candidates of their own.
    :ivar first: the providers that a query needs.
    """

    def __init__(
        self, shared: Sequence[SimulatedProvider], pools: Collection[str], needs: PoolNeeds
    ) -> None:
        self._shared = {provider.uuid: provider for provider in shared}
        self._pools, self._needs = pools, needs
        self._states = {provider.uuid: self._state(provider) for provider in shared}
        self._read()

    def _state(self, provider: SimulatedProvider) -> object:
        if provider.uuid in self._pools:
            return self._needs.state(provider)
        return provider.uuid, *(stock.free for stock in provider.stocks.values())

    def _read(self) -> None:
        self._uuids: dict[object, list[str]] = {}
        for uuid, state in self._states.items():
            self._uuids.setdefault(state, []).append(uuid)
        first = {uuid for uuids in self._uuids.values() for uuid in uuids[: self._needs.most]}
        self.first = tuple(self._shared[uuid] for uuid in self._shared if uuid in first)

    def update(self, uuids: Iterable[str]) -> bool:
        """Read changed providers again; tell whether any of them has another state."""
        states = {u: self._state(self._shared[u]) for u in uuids if u in self._shared}
        is_other = any(self._states[uuid] != state for uuid, state in states.items())
        if is_other:
            self._states |= states
            self._read()
        return is_other

    def equal_pools(self, roots: Iterable[str]) -> Iterator[str]:
        """Yield the pools in the states of some pools, which are among these root providers."""
        for state in {self._states[root] for root in roots if root in self._states}:
            yield from self._uuids[state]


class PooledHosts:
    """The hosts of a cloud, each with the pools that a query needs.

    :param hosts: with all pools.
    :param pools: the uuids of the pools.
    :ivar hosts: in the same order.
    """

    def __init__(
        self,
        hosts: Sequence[HostProviders],
        pools: Collection[str],
        groups: Sequence[RequestGroup],
    ) -> None:
        needs = PoolNeeds(groups)
        known: dict[tuple[SimulatedProvider, ...], SharedPools] = {}
        self._layouts: Layouts = {}
        self._shared: dict[int, SharedPools] = {}
        self.hosts = [*hosts]
        for number, host in enumerate(hosts):
            shared = host.shared
            if sum([provider.uuid in pools for provider in shared]) > needs.most:
                if shared not in known:
                    known[shared] = SharedPools(shared, pools, needs)
                self._shared[number] = known[shared]
                self._shorten(number)

    def _shorten(self, number: int) -> None:
        tree, pools = self.hosts[number].tree, self._shared[number].first
        self.hosts[number] = HostProviders(tree, pools, self._layouts)

    @property
    def has_pools(self) -> bool:
        """Whether some hosts have more pools than the query needs."""
        return bool(self._shared)

    def update(self, uuids: Collection[str]) -> Collection[int]:
        """Read changed providers again; return the numbers of the hosts that need other pools."""
        others = {shared for shared in {*self._shared.values()} if shared.update(uuids)}
        numbers = {number for number, shared in self._shared.items() if shared in others}
        for number in numbers:
            self._shorten(number)
        return numbers

    def has_changed(self, number: int, uuids: Collection[str]) -> bool:
        """Tell whether changed providers of a host are more than pools that keep their states."""
        tree = self.hosts[number].tree
        return number not in self._shared or any(provider.uuid in uuids for provider in tree)

    def with_equal_pools(self, number: int, roots: frozenset[str]) -> frozenset[str]:
        """Return root providers, and the pools of a host in the states of pools among them."""
        shared = self._shared.get(number)
        return roots.union(shared.equal_pools(roots)) if shared else roots
