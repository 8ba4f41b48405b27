"""A cloud in memory, which answers queries for allocation candidates as Placement does.

Source of the rules: Placement API reference, ``GET /allocation_candidates`` of microversion 1.36,
with ``in:`` of 1.39. Pure: no I/O, no configuration, no Nova.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.simulation.provider import CloudProvider, trees_of
from cpu_tiers.tools.simulation.reach import Reach, reaches
from cpu_tiers.tools.simulation.search import Search

Allocations = Mapping[str, Mapping[str, int]]
"""The amounts by provider uuid and resource class."""


class CloudChange(NamedTuple):
    """The amounts of a claim or a release, of a provider.

    :param root: the root provider of the provider's tree.
    :param amounts: the amounts by resource class that are taken; negative for a release.
    """

    root: str
    provider: str
    amounts: Mapping[str, int]


class ClaimRefused(CpuTiersError):
    """A claim does not fit: Placement would answer 409."""


class SimulatedCloud:
    """The providers of a cloud, and the allocations that change over time.

    :param providers: all providers; a root provider stands for a host.
    :raises KeyError: the parent of a provider is not among the providers.
    """

    def __init__(self, providers: Iterable[CloudProvider]) -> None:
        self._trees = trees_of(providers)
        self._providers = {
            provider.uuid: provider for providers in self._trees.values() for provider in providers
        }
        self.reaches: tuple[Reach, ...] = tuple(reaches(self._trees))
        self._reached_from: dict[str, list[int]] = {root: [] for root in self._trees}
        for number, reach in enumerate(self.reaches):
            for root in {provider.root for provider in reach.providers}:
                self._reached_from[root].append(number)
        self._alone = {
            reach.root for reach in self.reaches if len(reach.own()) == len(reach.providers)
        }
        self._changes: list[CloudChange] = []

    def search(self, query: CandidateQuery, *, each_order: bool = True) -> Search:
        """Return the candidates of a query, host by host; later claims only change some hosts."""
        return Search(self, query, each_order=each_order)

    def candidates(self, query: CandidateQuery) -> CandidatesAnswer:
        """Return what Placement answers to a query.

        The order of the candidates is the order of the providers; Placement has none.
        """
        search = self.search(query)
        search.refresh()
        return self.answer(search.all_requests())

    def claim(self, allocations: Allocations) -> None:
        """Allocate amounts for a new consumer, all of them or nothing.

        :raises ClaimRefused: an amount does not fit, or breaks the units of the inventory.
        :raises KeyError: there is no such provider.
        """
        for uuid, amounts in allocations.items():
            stocks = self._providers[uuid].stocks
            for name, amount in amounts.items():
                stock = stocks.get(name)
                if stock is None or not stock.allows(amount) or amount > stock.free:
                    raise ClaimRefused(f"provider {uuid}: {amount} of {name} cannot be allocated")
        self._take(allocations, 1)

    def release(self, allocations: Allocations) -> None:
        """Remove the allocations of a consumer.

        :raises KeyError: there is no such provider, or no such resource class of the provider.
        """
        self._take(allocations, -1)

    def _take(self, allocations: Allocations, sign: int) -> None:
        for uuid, amounts in allocations.items():
            provider = self._providers[uuid]
            provider.take(amounts, sign)
            signed = {name: sign * amount for name, amount in amounts.items()}
            self._changes.append(CloudChange(provider.root, uuid, signed))

    def changed_since(self, moment: int) -> tuple[Collection[int], int]:
        """Return the numbers of the reaches that have changed, and the moment that is now.

        :param moment: a moment of an earlier call; 0 is the beginning.
        """
        roots = {change.root for change in self._changes[moment:]}
        changed = {number for root in roots for number in self._reached_from[root]}
        return changed, len(self._changes)

    @property
    def moment(self) -> int:
        """Return the moment that is now: the number of changes so far."""
        return len(self._changes)

    def changes(self, moment: int) -> Sequence[CloudChange]:
        """Return the claims and the releases since a moment, provider by provider."""
        return self._changes[moment:]

    def root_of(self, uuid: str) -> str | None:
        """Return the root provider of a provider; ``None`` if there is no such provider."""
        provider = self._providers.get(uuid)
        return None if provider is None else provider.root

    def is_alone(self, root: str) -> bool:
        """Tell whether only the host's own providers can serve a request, and no shared one."""
        return root in self._alone

    def trees_of(self, requests: Iterable[AllocationRequest]) -> frozenset[str]:
        """Return the root providers of the trees of which candidates allocate something."""
        providers = self._providers
        return frozenset([providers[uuid].root for each in requests for uuid in each.allocations])

    def summaries(self, roots: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return the provider summaries of trees, as they are now.

        :param roots: the uuids of root providers.
        """
        return {
            provider.uuid: provider.summary() for root in roots for provider in self._trees[root]
        }

    def answer(self, requests: Sequence[AllocationRequest]) -> CandidatesAnswer:
        """Return the answer of Placement with these candidates."""
        return CandidatesAnswer(
            allocation_requests=tuple(requests),
            provider_summaries=self.summaries(self.trees_of(requests)),
        )
