"""The operations in which the tests of faults have faults."""

from collections.abc import Mapping
from typing import Any, NamedTuple

NEW = "new"


class Operation(NamedTuple):
    """An operation of a server.

    :param begin: the states and hosts before the operation, and after it.
    :param seconds: how long it takes on a quiet machine.
    """

    name: str
    begin: tuple[str, str]
    end: tuple[str, str]
    action: Mapping[str, Any] | None = None
    seconds: float = 8


COLD_MIGRATION = Operation(
    "cold migration",
    ("active", "compute1"),
    ("resized", "compute2"),
    {"migrate": {"host": "compute2"}},
    10,
)
EVACUATION = Operation(
    "evacuation",
    ("lost", "compute2"),
    ("active", "compute1"),
    {"evacuate": {"host": "compute1"}},
    6,
)
OPERATIONS = (
    Operation("boot", (NEW, ""), ("active", "compute1")),
    COLD_MIGRATION,
    Operation("revert", ("resized", "compute2"), ("active", "compute1"), {"revertResize": None}),
    Operation(
        "confirm", ("resized", "compute2"), ("active", "compute2"), {"confirmResize": None}, 4
    ),
    Operation(
        "live migration",
        ("active", "compute2"),
        ("active", "compute1"),
        {"os-migrateLive": {"host": "compute1", "block_migration": "auto"}},
        10,
    ),
    EVACUATION,
    Operation("return", ("evacuated", "compute1"), ("active", "compute1"), None, 12),
)
