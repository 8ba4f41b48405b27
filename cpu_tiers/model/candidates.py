"""Placement's answer to a query for allocation candidates.

Answers come from Placement and from files of users, so :meth:`CandidatesAnswer.parse`
reports every fault with its place. Source: Placement API reference,
``GET /allocation_candidates``, microversion 1.36. Pure.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.inventory import MAX_CAPACITY
from cpu_tiers.model.names import MEMORY_MB, PCPU, SHARING, VCPU

T = TypeVar("T")

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

    @classmethod
    def parse(cls, body: object, *, where: str) -> "CandidatesAnswer":
        """Check the decoded JSON of an answer.

        :param where: the name of the document in an error message.
        :raises InvalidInput: with every fault and its place.
        """
        faults = FaultList()
        at = _AnswerPlace(where, faults)
        # A body that is not an object has no keys to check: its only fault is raised at once.
        document = at.of(body, dict)
        faults.raise_if_any()
        summaries = at.get(document, "provider_summaries", dict)
        for uuid, summary in summaries.items():
            _check_summary(at / f"provider_summaries {uuid}", summary, summaries)
        requests = at.get(document, "allocation_requests", list)
        for index, request in enumerate(requests):
            _check_request(at / f"allocation_requests[{index}]", request, summaries)
        faults.raise_if_any()
        return cls(
            allocation_requests=tuple(map(_request, requests)), provider_summaries=summaries
        )

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
        the CPUs and the memory of a candidate decide.
        """
        hosts, candidates = frozenset(self.hosts()), dict[str, list[AllocationRequest]]()
        for request in self.allocation_requests:
            roots = [
                (_CPUS_AND_MEMORY.isdisjoint(amounts), root)
                for uuid, amounts in request.allocations.items()
                if (root := self.provider_summaries[uuid]["root_provider_uuid"]) in hosts
            ]
            if roots:
                candidates.setdefault(min(roots)[1], []).append(request)
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


class _AnswerPlace(DocumentPlace):
    """A place in Placement's answer, in which no key may be missing."""

    def get(self, body: Mapping[str, Any], key: str, kind: type[T]) -> T:
        """Return ``body[key]``, or add a fault and return an empty value."""
        if key not in body:
            allowed = "ask Placement with microversion 1.29 or newer"
            self.faults.add((self / key).path, "it is missing", allowed)
        return super().get(body, key, kind)

    def check_capacity(self, amount: object) -> None:
        # isinstance(True, int) is true
        if type(amount) is not int or not 0 <= amount <= MAX_CAPACITY:
            self.wrong(amount, "give a whole number of at least 0, as Placement does")

    def check_class(self, name: str, summary: object) -> None:
        # A summary of another form has its own fault.
        resources = summary.get("resources") if isinstance(summary, dict) else None
        if isinstance(resources, dict) and name not in resources:
            self.wrong(name, "name a resource class that the summary of the provider has")

    def check_provider(self, uuid: object, summaries: Mapping[str, Any]) -> None:
        if not isinstance(uuid, str) or uuid not in summaries:
            self.wrong(uuid, "name a provider that has a provider summary here")


def _check_summary(at: _AnswerPlace, body: object, summaries: Mapping[str, Any]) -> None:
    summary = at.of(body, dict)
    if summary is not body:
        return  # a value that is not an object needs no faults about missing keys
    for name, amounts in at.get(summary, "resources", dict).items():
        place = at / f"resources {name}"
        if place.of(amounts, dict) is amounts:
            for key in ("capacity", "used"):
                # A missing key is None here, which is not an amount either.
                (place / key).check_capacity(amounts.get(key))
    for trait in at.get(summary, "traits", list):
        (at / "traits").of(trait, str)
    if "root_provider_uuid" not in summary:
        at.get(summary, "root_provider_uuid", str)
        return
    (at / "root_provider_uuid").check_provider(summary["root_provider_uuid"], summaries)
    if summary.get("parent_provider_uuid", "") is not None:  # null says that it is the root
        parent = summary.get("parent_provider_uuid")
        (at / "parent_provider_uuid").check_provider(parent, summaries)


def _check_request(at: _AnswerPlace, body: object, summaries: Mapping[str, Any]) -> None:
    request = at.of(body, dict)
    if request is not body:
        return
    for uuid, allocation in at.get(request, "allocations", dict).items():
        place = at / f"allocations {uuid}"
        place.check_provider(uuid, summaries)
        if place.of(allocation, dict) is allocation:
            for name, amount in place.get(allocation, "resources", dict).items():
                (place / name).amount(amount, 1)
                (place / name).check_class(name, summaries.get(uuid))
    mappings = (at / "mappings").of(request.get("mappings", {}), dict)
    for suffix, uuids in mappings.items():
        place = at / f"mappings {suffix!r}"
        for uuid in place.of(uuids, list):
            place.check_provider(uuid, summaries)


def _request(request: Mapping[str, Any]) -> AllocationRequest:
    return AllocationRequest(
        allocations={uuid: a["resources"] for uuid, a in request["allocations"].items()},
        mappings={suffix: tuple(uuids) for suffix, uuids in request.get("mappings", {}).items()},
    )
