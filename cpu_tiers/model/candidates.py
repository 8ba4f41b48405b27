"""The answer to an allocation candidates request, checked.

Source: Placement API reference, ``GET /allocation_candidates``, microversion
1.36. It is read from the server and from files alike, so every fault is
reported with its place. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU

T = TypeVar("T")

_CPUS_AND_MEMORY = frozenset({VCPU, PCPU, MEMORY_MB})
_KINDS: Mapping[type[Any], str] = {dict: "an object", list: "a list", str: "a text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRequest:
    """One way to place the server.

    :param allocations: provider uuid to resource class to amount.
    :param mappings: suffix of a request group to the providers that serve it;
        empty in an answer of before microversion 1.34.
    """

    allocations: Mapping[str, Mapping[str, int]]
    mappings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The provider of each guest node, in their order; none where no query named nodes."""
        found: list[str] = []
        while providers := self.mappings.get(f"_PROC{len(found) + 1}"):
            found.append(providers[0])
        return tuple(found)

    @property
    def is_usable(self) -> bool:
        """Whether guest nodes are on nodes of their own; ``group_policy=none`` leaves it open."""
        return len(set(self.nodes)) == len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesAnswer:
    """All ways to place the server, and the state of the providers in them.

    :param provider_summaries: in Placement's own shape, as Nova hands it on:
        uuid to ``resources`` (class to ``capacity`` and ``used``),
        ``traits``, ``parent_provider_uuid`` and ``root_provider_uuid``.
    """

    allocation_requests: tuple[AllocationRequest, ...]
    provider_summaries: Mapping[str, Mapping[str, Any]]

    @classmethod
    def parse(cls, body: object, *, where: str) -> "CandidatesAnswer":
        """Check the decoded JSON of an answer.

        :param where: what to call the document in an error.
        :raises InvalidInput: with every fault, each at its place.
        """
        faults = FaultList()
        at = _Place(where, faults)
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

    @classmethod
    def of(
        cls,
        allocation_requests: Iterable[Mapping[str, Any]],
        provider_summaries: Mapping[str, Mapping[str, Any]],
    ) -> "CandidatesAnswer":
        """Return the answer as Placement gave it, unchecked."""
        return cls(
            allocation_requests=tuple(map(_request, allocation_requests)),
            provider_summaries=provider_summaries,
        )

    def on_host(self, root: str) -> tuple[AllocationRequest, ...]:
        """Return the ways to place the server on one host, such as the one it is forced to.

        :param root: the uuid of the host's root provider.
        """
        return tuple(
            request
            for request in self.allocation_requests
            if any(
                self.provider_summaries[uuid]["root_provider_uuid"] == root
                for uuid in request.allocations
            )
        )

    def usable(self) -> "CandidatesAnswer":
        """Return the answer without what no guest can be placed on.

        Hosts that have nothing else are left out.
        """
        requests = tuple(request for request in self.allocation_requests if request.is_usable)
        gone = self._roots_of(self.allocation_requests) - self._roots_of(requests)
        summaries = {
            uuid: summary
            for uuid, summary in self.provider_summaries.items()
            if summary["root_provider_uuid"] not in gone
        }
        return CandidatesAnswer(allocation_requests=requests, provider_summaries=summaries)

    def after(self, taken: AllocationRequest) -> "CandidatesAnswer":
        """Return what can still be claimed when one way was."""
        summaries = dict(self.provider_summaries)
        for uuid, allocation in taken.allocations.items():
            amounts = dict(summaries[uuid]["resources"])
            for name, amount in allocation.items():
                amounts[name] = {**amounts[name], "used": amounts[name]["used"] + amount}
            summaries[uuid] = {**summaries[uuid], "resources": amounts}
        requests = tuple(one for one in self.allocation_requests if _fits(one, summaries))
        return CandidatesAnswer(allocation_requests=requests, provider_summaries=summaries)

    def _roots_of(self, requests: Iterable[AllocationRequest]) -> set[str]:
        return {
            self.provider_summaries[uuid]["root_provider_uuid"]
            for request in requests
            for uuid in request.allocations
        }

    def hosts(self) -> tuple[str, ...]:
        """Return the uuids of the root providers that a server can run on.

        A tree that shares what it has with other trees, such as a storage
        pool, and has neither CPUs nor memory is no host.
        """
        classes: dict[str, set[str]] = {}
        sharing = set()
        for summary in self.provider_summaries.values():
            root = summary["root_provider_uuid"]
            classes.setdefault(root, set()).update(summary["resources"])
            if "MISC_SHARES_VIA_AGGREGATE" in summary["traits"]:
                sharing.add(root)
        return tuple(
            root
            for root, present in classes.items()
            if root not in sharing or not _CPUS_AND_MEMORY.isdisjoint(present)
        )


class _Place:
    """A place in the document; what is wrong there is added to ``faults``.

    For a wrong value an empty one of the right kind is returned, so that the
    check goes on and finds the other faults too.
    """

    def __init__(self, path: str, faults: FaultList) -> None:
        self.path = path
        self.faults = faults

    def __truediv__(self, key: str) -> "_Place":
        return _Place(f"{self.path}, {key}", self.faults)

    def wrong(self, given: str, allowed: str) -> None:
        self.faults.add(self.path, given, allowed)

    def of(self, value: object, kind: type[T]) -> T:
        if isinstance(value, kind):
            return value
        self.wrong(f"got {_shown(value)}", f"give {_KINDS[kind]}")
        return kind()

    def get(self, container: Mapping[str, Any], key: str, kind: type[T]) -> T:
        if key in container:
            return (self / key).of(container[key], kind)
        (self / key).wrong("it is missing", "ask Placement with microversion 1.36 or newer")
        return kind()

    def check_amount(self, amount: object) -> None:
        if type(amount) is not int or amount < 0:  # a bool is an int, but no amount
            self.wrong(f"got {_shown(amount)}", "give a whole number of at least 0")

    def check_provider(self, uuid: object, summaries: Mapping[str, Any]) -> None:
        if not isinstance(uuid, str) or uuid not in summaries:
            self.wrong(f"got {_shown(uuid)}", "name a provider that has a provider summary here")


def _shown(value: object) -> str:
    """Return the value, or its kind where it may be half the document."""
    if isinstance(value, dict | list):
        return _KINDS[type(value)]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _check_summary(at: _Place, body: object, summaries: Mapping[str, Any]) -> None:
    summary = at.of(body, dict)
    if summary is not body:
        return  # and no word about the keys that it lacks then
    for name, amounts in at.get(summary, "resources", dict).items():
        place = at / f"resources {name}"
        if place.of(amounts, dict) is amounts:
            for key in ("capacity", "used"):
                (place / key).check_amount(amounts.get(key))
    for trait in at.get(summary, "traits", list):
        (at / "traits").of(trait, str)
    (at / "root_provider_uuid").check_provider(summary.get("root_provider_uuid"), summaries)
    if summary.get("parent_provider_uuid", "") is not None:  # null says that it is the root
        parent = summary.get("parent_provider_uuid")
        (at / "parent_provider_uuid").check_provider(parent, summaries)


def _check_request(at: _Place, body: object, summaries: Mapping[str, Any]) -> None:
    request = at.of(body, dict)
    if request is not body:
        return
    for uuid, allocation in at.get(request, "allocations", dict).items():
        place = at / f"allocations {uuid}"
        place.check_provider(uuid, summaries)
        if place.of(allocation, dict) is allocation:
            for name, amount in place.get(allocation, "resources", dict).items():
                (place / name).check_amount(amount)
    mappings = (at / "mappings").of(request.get("mappings", {}), dict)
    for suffix, uuids in mappings.items():
        place = at / f"mappings {suffix!r}"
        for uuid in place.of(uuids, list):
            place.check_provider(uuid, summaries)


def _fits(request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether each provider has what one way to place the server takes of it."""
    return all(
        of_class[name]["used"] + amount <= of_class[name]["capacity"]
        for uuid, allocation in request.allocations.items()
        for of_class in [summaries[uuid]["resources"]]
        for name, amount in allocation.items()
    )


def _request(request: Mapping[str, Any]) -> AllocationRequest:
    return AllocationRequest(
        allocations={uuid: a["resources"] for uuid, a in request["allocations"].items()},
        mappings={suffix: tuple(uuids) for suffix, uuids in request.get("mappings", {}).items()},
    )
