"""The answer of a plan in words and as data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cpu_tiers.errors import printable
from cpu_tiers.model.names import DISK_GB, MEMORY_MB
from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.frame.terminal import shortened, wrapped
from cpu_tiers.tools.plan.copying import amount_of
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.room.free import FreeAmounts


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
            "live": not move.server.is_off,
            "source": services[move.server.host],
            "host": services[move.host],
            "memory_mb": amount_of(move.server.amounts, MEMORY_MB),
            "disk_gb": amount_of(move.server.amounts, DISK_GB),
        }
        for move, after in plan.steps
    ]


def stays_data(stay: Iterable[tuple[Server, str]]) -> list[dict[str, str]]:
    """Return servers that stay, with the reason of each, as data."""
    return [{"server": server.uuid, "name": server.name, "why": why} for server, why in stay]


def moves_text(moves: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return a table of moves; a field in each line if the table would be wider than ``width``."""
    if not moves:
        return ""
    head = ("", "server", "from", "to", "after")
    rows = [
        head,
        *(
            (
                str(number),
                printable(str(move["name"])),
                printable(str(move["from"])),
                printable(str(move["to"])),
                ", ".join(map(str, move["after"])) or "-",
            )
            for number, move in enumerate(moves, start=1)
        ),
    ]
    widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
    if sum(widths) + 2 * (len(head) - 1) <= width:
        return "\n".join(
            "  ".join(text.ljust(size) for text, size in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
    return "\n".join(
        f"{row[0]}. {row[1]}\n   from {row[2]}\n   to {row[3]}"
        + ("" if row[4] == "-" else f"\n   after {row[4]}")
        for row in rows[1:]
    )


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


def before_and_after(hosts: Hosts, plan: Plan) -> list[tuple[str, int, int, str, str]]:
    """Return the changed hosts of a plan: servers and free amounts before and after."""
    changed = {host for s in plan.steps for host in (s.move.server.host, s.move.host)}
    counts = [Counter(server.host for server in each.servers) for each in (hosts, plan.hosts)]
    rooms = [hosts.room(), plan.hosts.room()]

    def free(room: FreeAmounts, root: str) -> str:
        return amounts_text((row, room.of(row)) for row in hosts.rows_of(root))

    return [
        (name, counts[0][root], counts[1][root], free(rooms[0], root), free(rooms[1], root))
        for root, name in hosts.names.items()
        if root in changed
    ]
