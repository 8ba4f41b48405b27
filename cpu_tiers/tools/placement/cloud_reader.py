"""Reads the providers of a cloud, and the allocations of their consumers.

Placement tells inventories and allocations only in a request for each provider, so a large cloud
takes many requests, of which several are sent at the same time. A cloud in use changes meanwhile.
Each change gives a provider a new generation, and the list of all providers has the generations:
what has another generation in a later list is read again. Placement deletes allocations without a
new generation, so a server that is deleted meanwhile may leave a part of its allocations.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import Amounts, ConsumerId
from cpu_tiers.extra_specs.cpu_policies import HYPERTHREADING
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import COMPUTE_NODE, SHARING
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.placement.records import ListedProvider
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.memberships import (
    Names,
    aggregates_of_sharing,
    each_of,
    members_of_aggregates,
    passing_deleted,
    traits_of_providers,
)
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT

LOG = logging.getLogger(__name__)

ReadProgress = Callable[[int, int], None]
"""Is called with the number of providers that are read, and of all providers."""

ROUNDS = 3
"""So often are providers read again that have changed meanwhile."""


def untold(done: int, total: int) -> None:
    """Tell nobody."""


def read_whole_cloud(
    client: PlacementClient, progress: ReadProgress = untold, jobs: int = 1
) -> Snapshot:
    """Return the providers, and the allocations of each consumer.

    It takes two requests for each provider, a third for each root provider and each sharing
    provider, one or two for each trait that a provider has, one for each aggregate, and a few
    more. A provider that is neither a root nor shared has no aggregate that no root and no sharing
    provider has: Nova and Neutron put only those into aggregates. What changes meanwhile is read
    again, and a provider that is deleted meanwhile is left out.

    :param jobs: so many requests are sent at the same time.
    """
    listed = client.listed_providers()
    traits = traits_of_providers(client, client.traits_in_use(), jobs)
    with_aggregates = {uuid for uuid, of in traits.items() if SHARING in of}
    with_aggregates.update(each.provider.uuid for each in listed if each.provider.parent is None)
    reading = _Reading(
        client=client, jobs=jobs, traits=traits, with_aggregates=with_aggregates, kept=None
    )
    reading.read(listed, progress)
    reading.complete_aggregates()
    reading.read_changed(listed)
    return replace(reading.snapshot(), traits=client.custom_traits())


def read_sold_cloud(
    client: PlacementClient, progress: ReadProgress = untold, jobs: int = 1
) -> Snapshot:
    """Return what :func:`read_whole_cloud` returns, with the traits of disabled hosts and threads.

    It takes two requests for the list of providers, two for those with the traits, two
    requests for each provider with inventories and a request for each provider without.
    """
    kept = frozenset({DISABLED_TRAIT, HYPERTHREADING})
    listed = client.listed_providers()
    traits = traits_of_providers(client, kept)
    reading = _Reading(client=client, jobs=jobs, traits=traits, kept=kept)
    reading.read(listed, progress)
    reading.read_changed(listed)
    return reading.snapshot()


def read_tree(client: PlacementClient, root: str) -> Snapshot:
    """Return the providers of a tree without traits, and the allocations of their consumers."""
    reading = _Reading(client=client)
    reading.read([ListedProvider(each, 0) for each in client.providers_in_tree(root)])
    return reading.snapshot()


def read_empty_cloud(
    client: PlacementClient,
    traits: Iterable[str],
    progress: ReadProgress = untold,
    jobs: int = 1,
) -> SimulatedCloud:
    """Return all hosts as if they had no servers.

    It takes a request for each provider, one or two for each trait and two for each sharing
    provider.

    :param traits: the traits that matter.
    """
    named = traits_of_providers(
        client, client.traits_in_use() & {*traits, SHARING, COMPUTE_NODE}, jobs
    )
    sharing = [uuid for uuid, of in named.items() if SHARING in of]
    members = aggregates_of_sharing(client, sharing)
    reading = _Reading(client=client, jobs=jobs, traits=named, members=members, is_empty=True)
    reading.read(client.listed_providers(), progress)
    return reading.snapshot().cloud()


_State = tuple[Provider, Mapping[ConsumerId, Amounts]]
"""A provider, and the amounts that each consumer has of the provider."""


@dataclass(kw_only=True)
class _Reading:
    """The providers read up to now, and the allocations of consumers.

    :param traits, members: the traits and the aggregates of the providers, from lists.
    :param with_aggregates: the providers whose aggregates are asked for.
    :param kept: the traits that a provider which is read again keeps; ``None`` for all traits.
    :param is_empty: leave out the allocations.
    """

    client: PlacementClient
    jobs: int = 1
    traits: Names = field(default_factory=dict)
    members: Names = field(default_factory=dict)
    with_aggregates: Collection[str] = ()
    kept: frozenset[str] | None = frozenset()
    is_empty: bool = False
    states: dict[str, Provider] = field(default_factory=dict)
    held: dict[str, Mapping[ConsumerId, Amounts]] = field(default_factory=dict)
    _inventories: dict[Inventory, Inventory] = field(default_factory=dict)
    """Most hosts have equal inventories: each is kept once."""

    def read(self, listed: Sequence[ListedProvider], progress: ReadProgress = untold) -> None:
        """Read providers, the providers of a tree one after another."""
        done, trees = 0, list(_trees(each.provider for each in listed))
        for tree, states in zip(trees, each_of(self.jobs, self._tree, trees), strict=True):
            for number in range(len(tree)):
                progress(done + number, len(listed))
            self._keep(states)
            done += len(tree)

    def _tree(self, tree: Sequence[Provider]) -> dict[str, _State]:
        states: dict[str, _State] = {}
        for record in tree:
            if record.parent is None or record.parent in states:
                with passing_deleted():
                    states[record.uuid] = self._state(record)
        return states

    def _state(self, record: Provider) -> _State:
        uuid = record.uuid
        inventories = self.client.inventories(uuid).by_class
        aggregates = frozenset(self.members.get(uuid, ()))
        if uuid in self.with_aggregates:
            aggregates = self.client.aggregates(uuid)
        # Placement deletes no inventory of which something is allocated.
        has_allocations = inventories and not self.is_empty
        held = self.client.allocations(uuid) if has_allocations else {}
        traits = frozenset(self.traits.get(uuid, ()))
        state = replace(record, inventories=inventories, traits=traits, aggregates=aggregates)
        return state, held

    def _keep(self, states: Mapping[str, _State]) -> None:
        for uuid, (state, held) in states.items():
            once = self._inventories
            inventories = {n: once.setdefault(of, of) for n, of in state.inventories.items()}
            self.states[uuid] = replace(state, inventories=inventories)
            self.held[uuid] = held

    def complete_aggregates(self) -> None:
        """Put the remaining providers into the known aggregates."""
        names = {name for state in self.states.values() for name in state.aggregates}
        members = members_of_aggregates(self.client, names, self.jobs)
        for uuid in members.keys() & self.states.keys() - set(self.with_aggregates):
            self.states[uuid] = replace(self.states[uuid], aggregates=frozenset(members[uuid]))

    def read_changed(self, listed: Sequence[ListedProvider]) -> None:
        """Read providers with a new generation again, and drop providers missing in a new list.

        :param listed: the list from before the first read.
        """
        again = set[str]()
        for number in range(ROUNDS + 1):
            known = {each.provider.uuid: each for each in listed}
            listed = self.client.listed_providers()
            changed = [each.provider for each in listed if known.get(each.provider.uuid) != each]
            present = {each.provider.uuid for each in listed}
            self.states = {uuid: of for uuid, of in self.states.items() if uuid in present}
            if not changed or number == ROUNDS:
                break
            again.update(each.uuid for each in changed)
            for uuid, states in zip(
                [each.uuid for each in changed],
                each_of(self.jobs, self._changed, changed),
                strict=True,
            ):
                self.states.pop(uuid, None)
                self._keep(states)
        if again:
            LOG.info("providers that changed meanwhile, and were read again: %d", len(again))
        if changed:
            LOG.warning(
                "providers that changed each time that they were read: %d; run the command again"
                " while fewer servers start, or the answer has amounts of different moments",
                len(changed),
            )

    def _changed(self, record: Provider) -> dict[str, _State]:
        states: dict[str, _State] = {}
        with passing_deleted():
            states[record.uuid] = self._without_lists(record)
        return states

    def _without_lists(self, record: Provider) -> _State:
        """Read a provider without the lists of traits and aggregates, which are old."""
        state, held = self._state(record)
        traits = self.client.traits(record.uuid).names
        if self.kept is not None:
            traits &= self.kept
        aggregates = state.aggregates
        if self.with_aggregates and record.uuid not in self.with_aggregates:
            aggregates = self.client.aggregates(record.uuid)
        return replace(state, traits=traits, aggregates=aggregates), held

    def snapshot(self) -> Snapshot:
        return snapshot_of(self.states, self.held)


def snapshot_of(
    states: Mapping[str, Provider], held: Mapping[str, Mapping[ConsumerId, Amounts]]
) -> Snapshot:
    """Return a cloud, each provider after its parent; without orphans.

    :param states: the providers by uuid.
    :param held: by the uuid of the provider, the amounts that each consumer has of it.
    """
    providers: dict[str, Provider] = {}
    consumers: dict[str, dict[str, dict[str, int]]] = {}
    for tree in _trees(states.values()):
        for state in tree:
            if state.parent is not None and state.parent not in providers:
                continue
            providers[state.uuid] = state
            for consumer, amounts in held[state.uuid].items():
                consumers.setdefault(consumer, {})[state.uuid] = dict(amounts)
    return Snapshot(providers=tuple(providers.values()), consumers=consumers)


def _trees(records: Iterable[Provider]) -> Iterator[list[Provider]]:
    """Yield the trees by the names of the roots, each provider after its parent."""
    providers = ProviderIndex(records)
    trees = sorted(providers.trees().values(), key=lambda tree: tree[0].name)
    for tree in trees:
        yield sorted(
            tree, key=lambda each: [providers.name(n) for n in providers.lineage(each.uuid)][::-1]
        )
