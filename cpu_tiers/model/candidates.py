"""Placement's answer to a query for allocation candidates.

Source: Placement API reference, ``GET /allocation_candidates``, microversion 1.36. Pure.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cpu_tiers.model.names import MEMORY_MB, PCPU, SHARING, VCPU

_CPUS_AND_MEMORY = frozenset({VCPU, PCPU, MEMORY_MB})


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRequest:
    """An allocation candidate.

    :param allocations: the amounts by provider uuid and resource class.
    :param mappings: by the suffix of a request group, the providers that serve the
        group; empty in answers of microversions before 1.34.
    """

    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The NUMA node that serves each node of the guest, in the order of the guest's nodes.

        Empty if the query did not ask for NUMA nodes.
        """
        nodes: list[str] = []
        while providers := self.mappings.get(f"_PROC{len(nodes) + 1}"):
            nodes.append(providers[0])
        return tuple(nodes)

    @property
    def is_usable(self) -> bool:
        """Whether each node of the guest is on a NUMA node of its own.

        With ``group_policy=none``, Placement also returns candidates that put two nodes
        of the guest on the same NUMA node; Nova cannot place a guest like that.
        """
        return len(set(self.nodes)) == len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesAnswer:
    """All candidates for a server, and the state of their providers.

    :param provider_summaries: the summaries as Placement and Nova have them: by uuid,
        ``resources`` (by class, ``capacity`` and ``used``), ``traits``,
        ``parent_provider_uuid`` and ``root_provider_uuid``.
    """

    allocation_requests: tuple[AllocationRequest, ...]
    provider_summaries: Mapping[str, Mapping[str, Any]]

    def joined(self, other: "CandidatesAnswer") -> "CandidatesAnswer":
        """Return the candidates of this answer and of another answer."""
        return CandidatesAnswer(
            allocation_requests=(*self.allocation_requests, *other.allocation_requests),
            provider_summaries={**self.provider_summaries, **other.provider_summaries},
        )

    @classmethod
    def unchecked(
        cls,
        allocation_requests: Iterable[Mapping[str, Any]],
        provider_summaries: Mapping[str, Mapping[str, Any]],
    ) -> "CandidatesAnswer":
        """Return an answer of Placement without checks."""
        return cls(
            allocation_requests=tuple(map(_request, allocation_requests)),
            provider_summaries=provider_summaries,
        )

    def by_host(self) -> dict[str, list[AllocationRequest]]:
        """Return the candidates by the root provider of their host.

        Candidates that only pools serve are left out. If a host shares its disk with other hosts,
        the CPUs and the memory of a candidate decide, and then the providers that are not shared.
        """
        hosts, candidates = frozenset(self.hosts()), dict[str, list[AllocationRequest]]()
        summaries = self.provider_summaries
        for request in self.allocation_requests:
            roots = [
                (_CPUS_AND_MEMORY.isdisjoint(amounts), SHARING in summaries[uuid]["traits"], root)
                for uuid, amounts in request.allocations.items()
                if (root := summaries[uuid]["root_provider_uuid"]) in hosts
            ]
            if roots:
                candidates.setdefault(min(roots)[-1], []).append(request)
        return candidates

    def used_providers(self) -> Iterator[tuple[str, Collection[str]]]:
        """Yield the root provider of the host of each candidate, and the candidate's providers."""
        for host, requests in self.by_host().items():
            for request in requests:
                yield host, request.allocations.keys()

    def usable(self, avoided: Collection[str] = ()) -> "CandidatesAnswer":
        """Return the answer without the candidates on which no guest can be placed.

        A host without further candidates is left out, too.

        :param avoided: traits that no provider of the unsuffixed group may have.
        """
        requests = tuple(
            request
            for request in self.allocation_requests
            if request.is_usable and not (avoided and self._is_on(request, avoided))
        )
        unusable = self._roots_of(self.allocation_requests) - self._roots_of(requests)
        summaries = {
            uuid: summary
            for uuid, summary in self.provider_summaries.items()
            if summary["root_provider_uuid"] not in unusable
        }
        return CandidatesAnswer(allocation_requests=requests, provider_summaries=summaries)

    def _is_on(self, request: AllocationRequest, traits: Collection[str]) -> bool:
        """Tell whether the unsuffixed group of a candidate is on a provider with a trait."""
        summaries = map(self.provider_summaries.__getitem__, request.mappings.get("", ()))
        return any(not set(traits).isdisjoint(summary["traits"]) for summary in summaries)

    def roots_with(self, classes: frozenset[str]) -> frozenset[str]:
        """Return the root providers of the trees with an inventory of any resource class."""
        return frozenset(
            summary["root_provider_uuid"]
            for summary in self.provider_summaries.values()
            if not classes.isdisjoint(summary["resources"])
        )

    def without_hosts(self, roots: Container[str]) -> "CandidatesAnswer":
        """Return the answer without the candidates of some hosts; their summaries are kept."""
        left_out = {
            id(request)
            for root, requests in self.by_host().items()
            if root in roots
            for request in requests
        }
        if not left_out:
            return self
        requests = (each for each in self.allocation_requests if id(each) not in left_out)
        return replace(self, allocation_requests=tuple(requests))

    def after(self, taken: AllocationRequest) -> "CandidatesAnswer":
        """Return the candidates that can still be claimed after ``taken`` was claimed."""
        # Copies on every level that changes: the caller keeps the summaries of the whole answer.
        summaries = dict(self.provider_summaries)
        for uuid, allocation in taken.allocations.items():
            amounts = dict(summaries[uuid]["resources"])
            for name in allocation.keys() & amounts.keys():
                used = amounts[name]["used"] + allocation[name]
                amounts[name] = {**amounts[name], "used": used}
            summaries[uuid] = {**summaries[uuid], "resources": amounts}
        return replace(self, provider_summaries=summaries).claimable()

    def claimable(self) -> "CandidatesAnswer":
        """Return the candidates for which the providers have enough capacity left.

        A class that the summary lacks does not decide: only Placement knows its capacity.
        """

        def fits(uuid: str, name: str, amount: int) -> bool:
            amounts = self.provider_summaries[uuid]["resources"].get(name)
            # A capacity that is no number (NaN) decides nothing either.
            return amounts is None or not amounts["used"] + amount > amounts["capacity"]

        requests = (
            request
            for request in self.allocation_requests
            if all(
                fits(u, c, n)
                for u, amounts in request.allocations.items()
                for c, n in amounts.items()
            )
        )
        return replace(self, allocation_requests=tuple(requests))

    def _roots_of(self, requests: Iterable[AllocationRequest]) -> set[str]:
        return {
            self.provider_summaries[uuid]["root_provider_uuid"]
            for request in requests
            for uuid in request.allocations
        }

    def hosts(self) -> tuple[str, ...]:
        """Return the uuids of the root providers of hosts.

        A tree without CPUs and memory that shares its resources with other trees, such
        as a storage pool, is not a host.
        """
        classes: dict[str, set[str]] = {}
        sharing = set()
        for summary in self.provider_summaries.values():
            root = summary["root_provider_uuid"]
            classes.setdefault(root, set()).update(summary["resources"])
            # The trait with which operators mark a provider that Placement shares among trees.
            if SHARING in summary["traits"]:
                sharing.add(root)
        return tuple(
            root
            for root, present in classes.items()
            if root not in sharing or not _CPUS_AND_MEMORY.isdisjoint(present)
        )


def _request(request: Mapping[str, Any]) -> AllocationRequest:
    return AllocationRequest(
        allocations={uuid: a["resources"] for uuid, a in request["allocations"].items()},
        mappings={suffix: tuple(uuids) for suffix, uuids in request.get("mappings", {}).items()},
    )
