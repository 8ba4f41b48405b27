"""The page of a plan: the verdict, the migrations, and the hosts before and after."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cpu_tiers.tools.page.document import Cell, Page, PageBar, PageSection, PageTable


class HostUse(NamedTuple):
    """What a host has allocated of a resource class, before and after a plan."""

    host: str
    resource_class: str
    before: int
    after: int
    capacity: int

    def bar(self, amount: int) -> PageBar:
        """Return an amount as a part of the capacity."""
        part = amount / self.capacity if self.capacity else 1.0
        return PageBar(text=f"{amount:,} of {self.capacity:,}", part=part)


def plan_page(verdict: str, moves: Sequence[Mapping[str, Any]], hosts: Sequence[HostUse]) -> Page:
    """Return the page.

    :param moves: the moves as the command prints them in JSON.
    :param hosts: of each host that the plan changes; servers count as a class, too.
    """
    rows = [
        (number, move["name"], move["from"], move["to"], ", ".join(map(str, move["after"])))
        for number, move in enumerate(moves, start=1)
    ]
    columns = ("Step", "Server", "From", "To", "After the steps")
    bars: list[Sequence[Cell]] = [
        (use.host, use.resource_class, use.bar(use.before), use.bar(use.after)) for use in hosts
    ]
    return Page(
        title="Plan of migrations",
        texts=[verdict, "Nothing is carried out. Steps that do not wait may run together."],
        sections=[
            PageSection(
                key="hosts",
                title="Hosts before and after",
                parts=[
                    PageTable(
                        title="Allocated on the changed hosts",
                        columns=("Host", "Resource", "Before", "After"),
                        rows=bars,
                    )
                ],
            ),
            PageSection(
                key="moves",
                title="Migrations",
                parts=[PageTable(title="In their order", columns=columns, rows=rows)],
            ),
        ],
    )
