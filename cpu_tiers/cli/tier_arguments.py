"""The tiers of a cloud, as ``--tier`` names them."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from fractions import Fraction

from cpu_tiers.errors import FaultList
from cpu_tiers.guest.tier import Tier, multiplier_of
from cpu_tiers.model.domain import Domain

TIERS = ("gold=100", "silver=50", "bronze=25")
"""The spec's."""

_SYNTAX = r"(?P<name>[^=]+)=(?P<multiplier>[^x=]+)(x(?P<vcpus>[0-9]{1,5}))?"


def add_tier_argument(parser: ArgumentParser) -> None:
    """Take the tiers that there are."""
    parser.add_argument(
        "--tier",
        action="append",
        metavar="NAME=MULTIPLIER[xVCPUS]",
        help="a tier, and how many vCPUs one more server of it has (default: 1); may be "
        f"repeated (default: {', '.join(TIERS)})",
    )


def read_tiers(parsed_args: Namespace) -> list[Tier]:
    """Return the tiers that the arguments name.

    :raises InvalidInput: with every fault.
    """
    faults, tiers = FaultList(), list[Tier]()
    for text in parsed_args.tier or TIERS:
        match = re.fullmatch(_SYNTAX, text)
        if match is None:
            faults.add("--tier", f"got {text!r}", "give NAME=MULTIPLIER[xVCPUS], as gold=100x4")
            continue
        with faults:
            vcpus, where = int(match["vcpus"] or 1), f"of --tier {text}"
            tiers.append(Tier.parse(match["name"], match["multiplier"], vcpus, where=where))
    names = [tier.name for tier in tiers]
    for name in {name for name in names if names.count(name) > 1}:
        faults.add("--tier", f"{name} is given twice", "give each tier once")
    faults.raise_if_any()
    return tiers


def tier_names(domains: Iterable[Domain], tiers: Iterable[Tier]) -> dict[str, str | None]:
    """Return the tier of each guest, by its name; ``None`` where it has none of these."""
    names = {Fraction(tier.shares.amount): tier.name for tier in tiers}
    multipliers = {domain.name: multiplier_of(domain) for domain in domains}
    return {
        name: None if multiplier is None else names.get(multiplier)
        for name, multiplier in multipliers.items()
    }
