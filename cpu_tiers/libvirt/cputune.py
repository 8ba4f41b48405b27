"""``<cputune>``: the weight of a domain.

Source: https://libvirt.org/formatdomain.html#cpu-tuning; ``<shares>`` is the
cgroup's ``cpu.shares`` (v1) or ``cpu.weight`` (v2) of the whole domain.
"""

from collections.abc import Iterable

from lxml.builder import E
from lxml.etree import _Element

from cpu_tiers.guest.shares import domain_shares
from cpu_tiers.libvirt.contract import Guest


def elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<cputune><shares>`` where the flavor sets shares.

    :raises InvalidInput: the flavor's shares are invalid.
    """
    shares = domain_shares(guest.flavor)
    return [] if shares is None else [E.cputune(E.shares(str(shares)))]
