"""``<cputune>``: the weight of a domain.

Source: https://libvirt.org/formatdomain.html#cpu-tuning; ``<shares>`` is the
cgroup's ``cpu.shares`` (v1) or ``cpu.weight`` (v2) of the whole domain.
"""

from collections.abc import Iterable

from lxml.builder import E
from lxml.etree import SubElement, _Element

from cpu_tiers.guest.shares import domain_shares
from cpu_tiers.libvirt.contract import Guest


def elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<cputune><shares>`` where the flavor sets shares.

    :raises InvalidInput: the flavor's shares are invalid.
    """
    shares = domain_shares(guest.flavor)
    return [] if shares is None else [E.cputune(E.shares(str(shares)))]


def set_shares(domain: _Element, shares: int) -> None:
    """Give a domain this weight, whatever it had, in place."""
    cputune = domain.find("cputune")
    if cputune is None:
        cputune = SubElement(domain, "cputune")
    element = cputune.find("shares")
    if element is None:
        element = SubElement(cputune, "shares")
    element.text = str(shares)
