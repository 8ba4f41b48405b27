"""``cpu-tiers host show``: the entitlement of guests, and the number of servers with room."""

from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from cpu_tiers.errors import printable
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.host_arguments import add_occupancy_arguments, read_occupancy
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers, tier_names
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.host.checks.delivery import Delivery
from cpu_tiers.tools.libvirt.connection import read_hostname
from cpu_tiers.tools.tiers.occupancy import Figures, Occupancy, Outlook
from cpu_tiers.tools.tiers.tier import Tier, multiplier_of, unnamed_tier

COLUMNS = (
    *("name", "uuid", "flavor", "tier", "multiplier", "shares", "vcpus"),
    *("floor_cpus", "entitlement_cpus", "more", "with_one", "with_all"),
)

_FORMATS = ("svg", "png")


class HostShow(NovaConfCommand, ListCommand):
    """List the guests of a host, and the CPU that each guest gets while all guests want to run.

    The floor is what the guest gets wherever the kernel has put the vCPUs. The entitlement is
    what the guest gets if the kernel moves the vCPUs well. After the guests, the list has a row
    for each tier: how many more servers of the tier fit on the host, and how much CPU an
    additional server would get. The columns with_one and with_all show the floor and the
    entitlement of each guest beside one additional server of each tier, and beside as many as fit.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_occupancy_arguments(parser)
        add_tier_argument(parser)
        parser.add_argument("--hostname", metavar="NAME", help="name of the host in the picture")
        add_picture_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        tiers = read_tiers(parsed_args)
        with ProgressLine("reading the guests") as progress:
            host = read_occupancy(parsed_args, self.nova_conf())
            progress.tell("computing the CPUs of the guests")
            outlooks = [host.outlook(tier) for tier in tiers]
        if parsed_args.svg or parsed_args.png:
            uri = parsed_args.connect
            name = parsed_args.hostname or (read_hostname(uri) if uri else "this host")
            draw(parsed_args, name, host, tiers)
        return COLUMNS, [*_guests(host, outlooks), *map(_newcomer, outlooks)]


def _guests(host: Occupancy, outlooks: Iterable[Outlook]) -> Iterable[tuple[object, ...]]:
    names = tier_names(host.domains, [outlook.tier for outlook in outlooks])
    with_one = {outlook.tier.name: outlook.one.guests for outlook in outlooks if outlook.one}
    with_all = {outlook.tier.name: outlook.all.guests for outlook in outlooks if outlook.all}
    entitlements = host.figures()
    for domain in host.domains:
        multiplier = multiplier_of(domain)
        yield (
            *map(_text, (domain.name, domain.uuid, domain.flavor, names[domain.name])),
            _number(multiplier),
            host.weight(domain),
            len(domain.vcpu_sets),
            _number(entitlements[domain.name].floor),
            _number(entitlements[domain.name].entitlement),
            _text(None),
            _by_tier({tier: guests[domain.name] for tier, guests in with_one.items()}),
            _by_tier({tier: guests[domain.name] for tier, guests in with_all.items()}),
        )


def _newcomer(outlook: Outlook) -> tuple[object, ...]:
    tier, one, all_ = outlook.tier, outlook.one, outlook.all
    return (
        *(f"one more {tier.name}", _text(None), _text(None), tier.name),
        _number(Fraction(tier.shares.amount)),
        tier.weight,
        tier.vcpus,
        _number(one.newcomer.floor if one else None),
        _number(one.newcomer.entitlement if one else None),
        outlook.more,
        _by_tier({tier.name: one.newcomer} if one else {}),
        _by_tier({tier.name: all_.newcomer} if all_ else {}),
    )


def _text(text: str | None) -> FormattedValue:
    return FormattedValue(text, lambda text: printable(text or ""))


def _number(number: Fraction | None) -> FormattedValue:
    return FormattedValue(None if number is None else float(number), _digits)


def _by_tier(entitlements: Mapping[str, Figures]) -> FormattedValue:
    numbers = {
        tier: {
            "floor_cpus": float(entitled.floor),
            "entitlement_cpus": float(entitled.entitlement),
        }
        for tier, entitled in entitlements.items()
    }
    return FormattedValue(numbers, _line)


def _line(numbers: Mapping[str, Mapping[str, float]]) -> str:
    return ", ".join(
        f"{tier} {' to '.join(dict.fromkeys(map(_digits, pair.values())))}"
        for tier, pair in numbers.items()
    )


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}".rstrip("0").rstrip(".")


def add_picture_arguments(parser: ArgumentParser) -> None:
    """Add an argument for each format of a picture."""
    for kind in _FORMATS:
        parser.add_argument(
            f"--{kind}", metavar="FILE", help=f"draw the host to this file, as {kind.upper()}"
        )


def draw(
    parsed_args: Namespace,
    name: str,
    host: Occupancy,
    tiers: Collection[Tier],
    deliveries: Mapping[str, Delivery] | None = None,
) -> None:
    """Write the picture of a host to each file in the arguments.

    :param deliveries: the CPU time of measured guests, by the guest's name.
    :raises InvalidInput: a file cannot be written.
    """
    for kind in _FORMATS:
        if path := getattr(parsed_args, kind):
            from cpu_tiers.tools.page.charts import draw_host

            write_output(path, draw_host(kind, name, picture_rows(host, tiers, deliveries)))


def picture_rows(
    host: Occupancy, tiers: Collection[Tier], deliveries: Mapping[str, Delivery] | None = None
) -> list[dict[str, Any]]:
    """Return the guests for the picture, sorted from the highest to the lowest tier."""
    entitlements, names = host.figures(), tier_names(host.domains, tiers)
    guests = []
    for domain in host.domains:
        multiplier = multiplier_of(domain)
        guest = {
            "name": domain.name,
            "vcpus": len(domain.vcpu_sets),
            "tier": names[domain.name] or unnamed_tier(multiplier),
            "entitlement": float(entitlements[domain.name].entitlement),
            "floor": float(entitlements[domain.name].floor),
        }
        if deliveries:
            delivery = deliveries.get(domain.name)
            for key in ("wanted", "due", "delivered", "short"):
                guest[key] = getattr(delivery, key, None)
        guests.append((-(multiplier or 0), guest["tier"], domain.name, guest))
    return [guest for *_, guest in sorted(guests, key=lambda row: row[:3])]
