"""Reading an answer of Placement with allocation candidates, with every fault and its place.

Answers come from Placement, and from files of users: the body of an answer, or the list that the
openstack client prints of the body. Source: Placement API reference, ``GET
/allocation_candidates``, microversion 1.36. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from cpu_tiers.errors import FaultList
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.inventory import MAX_CAPACITY

T = TypeVar("T")


def read_answer(body: object, *, where: str) -> CandidatesAnswer:
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
    return CandidatesAnswer.unchecked(requests, summaries)


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


NUMBER, ALLOCATION, PROVIDER, TRAITS = "#", "allocation", "resource provider", "traits"
INVENTORY = "inventory used/capacity"

COMMAND = "openstack allocation candidate list -f json"

_AMOUNT = re.compile(r"([A-Z0-9_]{1,255})=([0-9]{1,10})", re.ASCII)
_INVENTORY = re.compile(r"([A-Z0-9_]{1,255})=([0-9]{1,10})/([0-9]{1,10})", re.ASCII)
_TRAIT = re.compile(r"([A-Z0-9_]{1,255})", re.ASCII)


def read_candidate_list(body: Sequence[object], *, where: str) -> CandidatesAnswer:
    """Return the answer of Placement that the list was made from, as far as the list has it.

    The list does not say which provider is the root provider of a host. So each candidate must
    have a single provider, the host.

    :param where: the name of the document in an error message.
    :raises InvalidInput: with every fault and its place.
    """
    faults = FaultList()
    summaries: dict[str, Mapping[str, Any]] = {}
    requests: dict[int, AllocationRequest] = {}
    for index, item in enumerate(body, start=1):
        at = _Row(f"{where}, row {index}", faults)
        row = at.of(item, dict)
        if row is not item or at.lacks_columns(row):
            continue
        number, provider = at.number(row), at.get(row, PROVIDER, str)
        if provider == row[PROVIDER] == "":
            (at / PROVIDER).wrong(provider, "give the uuid of the provider")
        allocation = {name: int(n) for name, n in at.parts(row, ALLOCATION, _AMOUNT)}
        summary = at.summary(row, provider)
        (at / ALLOCATION).check_classes(allocation, summary["resources"])
        if number in requests:
            at.wrong_host(number)
        if summaries.setdefault(provider, summary) != summary:
            (at / PROVIDER).wrong(provider, "give the same inventory and traits in each row")
        requests[number] = AllocationRequest(allocations={provider: allocation})
    faults.raise_if_any()
    return CandidatesAnswer(
        allocation_requests=tuple(requests.values()), provider_summaries=summaries
    )


class _Row(DocumentPlace):
    """A row of the list."""

    def lacks_columns(self, row: Mapping[str, Any]) -> bool:
        missing = [
            name for name in (NUMBER, ALLOCATION, PROVIDER, INVENTORY, TRAITS) if name not in row
        ]
        if missing:
            advice = f"give all columns of {COMMAND}"
            if missing == [TRAITS]:
                advice += ", with --os-placement-api-version 1.29 or newer"
            self.faults.add(self.path, f"no column {', '.join(missing)}", advice)
        return bool(missing)

    def number(self, row: Mapping[str, Any]) -> int:
        if type(row[NUMBER]) is int:  # isinstance(True, int) is true
            return int(row[NUMBER])
        (self / NUMBER).wrong(row[NUMBER], "give the number of the candidate")
        return 0

    def parts(
        self, row: Mapping[str, Any], column: str, form: re.Pattern[str]
    ) -> list[tuple[str, ...]]:
        """Return the groups of each part of a text with commas between the parts."""
        at = self / column
        text = at.of(row[column], str)
        matches = [(part, form.fullmatch(part)) for part in text.split(",") if text]
        for part, match in matches:
            if match is None:
                at.wrong(part, f"give the column as `{COMMAND}` prints it")
        return [match.groups() for _, match in matches if match]

    def summary(self, row: Mapping[str, Any], provider: str) -> Mapping[str, Any]:
        return {
            "resources": {
                name: {"used": int(used), "capacity": int(capacity)}
                for name, used, capacity in self.parts(row, INVENTORY, _INVENTORY)
            },
            "traits": [name for (name,) in self.parts(row, TRAITS, _TRAIT)],
            "parent_provider_uuid": None,
            "root_provider_uuid": provider,
        }

    def check_classes(self, allocation: Mapping[str, int], present: Mapping[str, Any]) -> None:
        for name, amount in allocation.items():
            (self / name).amount(amount, 1)
        for name in allocation.keys() - present.keys():
            self.wrong(name, f"name a resource class that the column {INVENTORY} has")

    def wrong_host(self, number: int) -> None:
        self.faults.add(
            self.path,
            f"candidate {number} has several providers",
            "the list does not say which providers belong to one host: leave out --candidates, so"
            " that Placement is asked, or give the body of GET /allocation_candidates",
        )
