"""The answer of a plan in words and as data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cpu_tiers.errors import printable
from cpu_tiers.model.names import DISK_GB, MEMORY_MB
from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.frame.terminal import shortened, width_of, wrapped
from cpu_tiers.tools.plan.copying import amount_of
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan


def moves_data(plan: Plan) -> list[dict[str, Any]]:
    """Return the moves of a plan as data, in their order."""
    names = plan.hosts.names
    services = {**names, **plan.hosts.services}
    return [
        {
            "server": move.server.uuid,
            "name": move.server.name,
            "from": names[move.server.host],
            "to": names[move.host],
            "after": list(after),
            "settles": settles,
            "live": not move.server.is_off,
            "named": move.is_named,
            "source": services[move.server.host],
            "host": services[move.host],
            "memory_mb": amount_of(move.server.amounts, MEMORY_MB),
            "disk_gb": amount_of(move.server.amounts, DISK_GB),
        }
        for move, after, settles in plan.steps
    ]


def stays_data(stay: Iterable[tuple[Server, str]]) -> list[dict[str, str]]:
    """Return servers that stay, with the reason of each, as data."""
    return [{"server": server.uuid, "name": server.name, "why": why} for server, why in stay]


_LEAST_NAME = 8
_HEAD = ("", "server", "from", "to", "after")
_NAMES = (1, 2, 3)
"""The columns with names, which may be shortened."""


def moves_text(moves: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return a table of moves, with shortened names if it would be wider than ``width``.

    A field stands in each line if even short names are too wide.
    """
    if not moves:
        return ""
    rows = [
        (
            str(number),
            *(printable(str(move[key])) for key in ("name", "from", "to")),
            ", ".join(map(str, move["after"])) or "-",
        )
        for number, move in enumerate(moves, start=1)
    ]
    widths = _fitted(
        [max(map(width_of, column)) for column in zip(_HEAD, *rows, strict=True)], width
    )
    if widths is None:
        return "\n".join(
            f"{row[0]}. {row[1]}\n   from {row[2]}\n   to {row[3]}"
            + ("" if row[4] == "-" else f"\n   after {row[4]}")
            for row in rows
        )
    return "\n".join("  ".join(map(_short, row, widths)).rstrip() for row in (_HEAD, *rows))


def _fitted(widths: list[int], width: int) -> list[int] | None:
    """Return the widths of the columns with shorter names; ``None`` if even these are too wide."""
    over = sum(widths) + 2 * (len(_HEAD) - 1) - width
    while over > 0:
        longest = max(_NAMES, key=widths.__getitem__)
        if widths[longest] <= _LEAST_NAME:
            return None
        widths[longest] -= 1
        over -= 1
    return widths


def _short(name: str, size: int) -> str:
    """Return a name in a number of columns: both ends of a long name, which tell most."""
    if width_of(name) <= size:
        return name + " " * (size - width_of(name))
    last = size // 3
    return f"{name[: size - last - 1]}…{name[len(name) - last :]}"


def stays_text(stays: Sequence[Mapping[str, str]], title: str, *, show_all: bool) -> str:
    """Return a line for each server that stays, up to a number of lines."""
    lines = [f"{printable(row['name'])}: {printable(row['why'])}" for row in stays]
    shown = [wrapped(line, indent="  ") for line in shortened(lines, show_all=show_all)]
    return "\n".join([title, *shown]) if lines else ""


def disable_text(hosts: Sequence[str]) -> str:
    """Return what comes before the first move: nova-scheduler would fill a host again."""
    return "\n".join(
        f"First: openstack compute service set --disable {printable(host)} nova-compute"
        for host in hosts
    )


def amounts_text(amounts: Iterable[tuple[Row, int]]) -> str:
    """Return the sum of the amounts of each resource class."""
    sums = Counter[str]()
    for (_, name), amount in amounts:
        sums[name] += amount
    return ", ".join(f"{amount} {name}" for name, amount in sorted(sums.items()))


def uses(hosts: Hosts, plan: Plan) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield what the changed hosts of a plan have allocated before and after the plan.

    :returns: host, resource class, allocated amounts before and after, and capacity.
    """
    changed = {host for s in plan.steps for host in (s.move.server.host, s.move.host)}
    before, after = hosts.room(), plan.hosts.room()
    for host in hosts.cloud.hosts:
        if host.root not in changed:
            continue
        sums: dict[str, list[int]] = {}
        for provider in host.tree:
            for name, stock in provider.stocks.items():
                row, capacity = (provider.uuid, name), stock.capacity
                used = (capacity - before.of(row), capacity - after.of(row), capacity)
                sums[name] = [a + b for a, b in zip(sums.get(name, [0, 0, 0]), used, strict=True)]
        for name, (old, new, capacity) in sorted(sums.items()):
            if old != new:
                yield host.name, name, old, new, capacity
