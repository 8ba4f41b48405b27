"""The option ``--snapshot FILE``: a command reads the file instead of the cloud."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from typing import NoReturn

from cpu_tiers.cli.documents import read_json
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.similar_names import advice
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.simulation.snapshot import Snapshot

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
    """Return the snapshot in a file; ``-`` is standard input.

    :raises InvalidInput: with every fault of the document.
    """
    return Snapshot.parse(read_json(path, _SNAPSHOT), where=path)


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
