"""The list of allocation candidates that the openstack client prints.

Source: ``openstack allocation candidate list -f json`` of osc-placement. The column ``traits``
needs microversion 1.17; the other columns do not depend on the microversion. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.document import DocumentPlace

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
