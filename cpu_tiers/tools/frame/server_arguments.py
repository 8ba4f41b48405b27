"""Arguments that several commands have: a server, flavors and tiers."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.documents import read_flavor, read_flavors, read_image
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.tier import Tier, multiplier_of
from cpu_tiers.translators import ServerRequest

if TYPE_CHECKING:
    from cpu_tiers.tools.frame.cloud_source import CloudSource


def add_source_arguments(parser: ArgumentParser, *, has_servers: bool = True) -> None:
    """Add the arguments for the flavor: a file, a flavor of the cloud, or a server's flavor."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "flavor_file",
        nargs="?",
        metavar="FLAVOR.json",
        help="output of `openstack flavor show -f json`",
    )
    source.add_argument("--flavor", metavar="NAME", help="name or id of a flavor of the cloud")
    if has_servers:
        source.add_argument(
            "--server",
            metavar="NAME",
            help="name or id of a server of the cloud: the request that would be made for it now",
        )


def add_image_argument(parser: ArgumentParser) -> None:
    """Add the argument for the image of a server."""
    parser.add_argument(
        "--image", metavar="IMAGE.json", help="output of `openstack image show -f json`"
    )


def add_server_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the flavor and the image of a server."""
    parser.add_argument(
        "flavor", metavar="FLAVOR.json", help="output of `openstack flavor show -f json`"
    )
    add_image_argument(parser)


def read_server(parsed_args: Namespace) -> ServerRequest:
    """Return the server that the arguments describe, without ports."""
    return ServerRequest(
        flavor=read_flavor(parsed_args.flavor),
        image=read_image(parsed_args.image) if parsed_args.image else None,
    )


def add_flavors_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for several flavors: files, and flavors of the cloud."""
    parser.add_argument(
        "flavor_file",
        nargs="*",
        metavar="FLAVOR.json",
        help="output of `openstack flavor show -f json` or `flavor list --long -f json`",
    )
    parser.add_argument(
        "--flavor",
        action="append",
        default=[],
        metavar="NAME",
        help="name or id of a flavor of the cloud; may be repeated",
    )


def given_flavors(
    parsed_args: Namespace, cloud: "CloudSource", faults: FaultList
) -> Iterator[Flavor]:
    """Yield the flavors of :func:`add_flavors_arguments`.

    :param faults: collects the faults of the files.
    """
    for path in parsed_args.flavor_file:
        yield from read_flavors(path, faults)
    if parsed_args.flavor:
        yield from cloud.flavors_named(parsed_args.flavor)


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
