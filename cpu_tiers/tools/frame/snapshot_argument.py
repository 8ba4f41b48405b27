"""The option ``--snapshot FILE``: a command reads the file instead of the cloud."""

import logging
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import NoReturn

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import advice
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.simulation.snapshot import Snapshot

LOG = logging.getLogger(__name__)

WRITES = "the command writes to Placement"
"""A reason to refuse a snapshot."""

_SNAPSHOT = "give the whole file of cpu-tiers cloud snapshot"


def add_snapshot_argument(parser: ArgumentParser) -> None:
    """Add the option of a command that reads a cloud."""
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        help="read this file of `cpu-tiers cloud snapshot` instead of Placement and Nova",
    )


def refuse_snapshot_argument(parser: ArgumentParser, reason: str) -> ArgumentParser:
    """Have a command refuse the option, and return its parser.

    :param reason: why the command needs the cloud itself.
    """

    def refuse(_: str) -> NoReturn:
        raise ArgumentTypeError(f"{reason}, so a snapshot is not enough; ask the cloud itself")

    parser.add_argument("--snapshot", type=refuse, help=SUPPRESS)
    return parser


def read_snapshot(path: str) -> Snapshot:
    """Return the snapshot in a file, and log its time; ``-`` is standard input.

    :raises InvalidInput: with every fault of the document.
    """
    snapshot = Snapshot.parse(read_json(path, _SNAPSHOT), where=path)
    if snapshot.taken:
        LOG.info("%s: snapshot of %s", path, moment(snapshot.taken))
    return snapshot


def moment(time: datetime) -> str:
    """Return a time in UTC as a person reads it: ``2026-11-23 08:00 UTC``."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def flavors_of(snapshot: Snapshot, path: str) -> tuple[Flavor, ...]:
    """Return the flavors of a snapshot.

    :raises InvalidInput: the snapshot was written without flavors.
    """
    if not snapshot.flavors:
        allowed = "give the flavor as a file, or write a snapshot without --no-flavors"
        raise InvalidInput.of(path, "the snapshot has no flavors", allowed)
    return snapshot.flavors


def flavor_in(snapshot: Snapshot, path: str, name: str) -> Flavor:
    """Return the flavor of a snapshot with this name.

    :raises InvalidInput: the snapshot has no such flavor.
    """
    flavors = flavors_of(snapshot, path)
    for flavor in flavors:
        if flavor.name == name:
            return flavor
    masked = ", whose names are masked" if snapshot.is_masked else ""
    raise InvalidInput.of(
        f"--flavor {name}",
        f"not a flavor of the snapshot{masked}",
        advice(name, [flavor.name for flavor in flavors], "name a flavor of the snapshot"),
    )
