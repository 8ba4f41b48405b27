"""What the moves of a plan copy between hosts, and how long that takes at a rate. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.room.free import Amounts

DEFAULT_RATE = 100
"""MiB in a second: a network of 1 Gbit/s has 119 without any overhead."""

SETTLING = 130
"""Seconds in which nova-scheduler hears where all servers are: each nova-compute
sends its list every 120 seconds (``scheduler_instance_sync_interval``)."""


def amount_of(amounts: Amounts, resource_class: str) -> int:
    """Return the amount of a resource class, of all providers together."""
    return sum(amount for (_, name), amount in amounts if name == resource_class)


def copied(moves: Iterable[Mapping[str, Any]], rate: int) -> dict[str, int]:
    """Return what moves copy, and the minutes of one move after the other.

    A live migration copies memory, a cold migration disks. A live migration copies disks, too, if
    the hosts share no storage, which neither Placement nor Nova's API tells.
    """
    memory = disks = seconds = 0
    for move in moves:
        memory += move["memory_mb"] if move["live"] else 0
        disks += move["disk_gb"]
        mebibytes = move["memory_mb"] if move["live"] else 1024 * move["disk_gb"]
        seconds += math.ceil(mebibytes / rate) + SETTLING * move["settles"]
    return {
        "memory_mb": memory,
        "disk_gb": disks,
        "minutes": math.ceil(seconds / 60),
        "rate_mib": rate,
    }


def copied_text(copy: Mapping[str, int]) -> str:
    """Return what is copied in words; nothing for nothing."""
    if not copy["memory_mb"] and not copy["disk_gb"]:
        return ""
    disks = (
        f"; beside this, {copy['disk_gb']} GiB of disks if the hosts share no storage"
        if copy["disk_gb"]
        else ""
    )
    return (
        f"{copy['memory_mb'] / 1024:.1f} GiB of memory to copy:"
        f" {count_of(copy['minutes'], 'minute')} at {copy['rate_mib']} MiB/s{disks}."
    )
