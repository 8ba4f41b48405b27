"""The argument ``--tier``, which names the tiers of a cloud."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from fractions import Fraction

from cpu_tiers.errors import FaultList
from cpu_tiers.guest.tier import Tier, multiplier_of
from cpu_tiers.model.domain import Domain

TIERS = ("gold=100", "silver=50", "bronze=25")
"""The default: the tiers of the spec cpu-performance-service-levels."""

_SYNTAX = r"(?P<name>[^=]+)=(?P<multiplier>[^x=]+)(x(?P<vcpus>[0-9]{1,5}))?"


def add_tier_argument(parser: ArgumentParser) -> None:
    """Add the argument ``--tier``."""
    parser.add_argument(
        "--tier",
        action="append",
        metavar="NAME=MULTIPLIER[xVCPUS]",
        help="a tier, and the number of vCPUs of its servers (default: 1); may be repeated "
        f"(default: {', '.join(TIERS)})",
    )


def read_tiers(parsed_args: Namespace) -> list[Tier]:
    """Return the tiers in the arguments, or the default tiers.

    :raises InvalidInput: with every fault of the arguments.
    """
    faults, tiers = FaultList(), list[Tier]()
    for text in parsed_args.tier or TIERS:
        match = re.fullmatch(_SYNTAX, text)
        if match is None:
            allowed = "give NAME=MULTIPLIER[xVCPUS], such as gold=100x4"
            faults.add("--tier", f"got {text!r}", allowed)
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
    """Return the name of each guest's tier by the guest's name; ``None`` without a tier."""
    names = {Fraction(tier.shares.amount): tier.name for tier in tiers}
    multipliers = {domain.name: multiplier_of(domain) for domain in domains}
    return {
        name: None if multiplier is None else names.get(multiplier)
        for name, multiplier in multipliers.items()
    }
