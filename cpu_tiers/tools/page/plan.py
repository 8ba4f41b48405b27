"""The page of a plan: the verdict, the migrations, and the hosts before and after."""

from collections.abc import Mapping, Sequence
from typing import Any

from cpu_tiers.tools.page.document import Cell, Page, PageSection, PageTable


def plan_page(
    verdict: str, moves: Sequence[Mapping[str, Any]], hosts: Sequence[Sequence[Cell]]
) -> Page:
    """Return the page.

    :param moves: the moves as the command prints them in JSON.
    :param hosts: for each host that the plan changes its name, its number of servers before and
        after the plan, and its free amounts before and after.
    """
    rows = [
        (number, move["name"], move["from"], move["to"], ", ".join(map(str, move["after"])))
        for number, move in enumerate(moves, start=1)
    ]
    columns = ("Step", "Server", "From", "To", "After the steps")
    host_columns = ("Host", "Servers", "Servers after", "Free", "Free after")
    return Page(
        title="Plan of migrations",
        texts=[verdict, "Nothing is carried out. Steps that do not wait may run together."],
        sections=[
            PageSection(
                key="moves",
                title="Migrations",
                parts=[PageTable(title="In their order", columns=columns, rows=rows)],
            ),
            PageSection(
                key="hosts",
                title="Hosts before and after",
                parts=[PageTable(title="Changed hosts", columns=host_columns, rows=hosts)],
            ),
        ],
        datasets={},
    )
