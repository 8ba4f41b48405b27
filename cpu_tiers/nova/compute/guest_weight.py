"""The weight of a guest by ``quota:cpu_shares_multiplier``, which Nova does not know.

Nova gives a guest a weight only by ``quota:cpu_shares``. So the driver shows Nova a flavor with
``quota:cpu_shares``, and a seam keeps the weight in a live migration.

Spec: cpu-performance-service-levels, "CPU Share Management".
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import functools
import logging
from collections.abc import Callable
from typing import Any

from nova import objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES
from cpu_tiers.guest.shares import domain_shares
from cpu_tiers.libvirt.cputune import set_shares
from cpu_tiers.nova.convert import to_flavor
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)


def multiplied_shares(flavor: objects.Flavor) -> int | None:
    """Return the weight by the multiplier of a flavor, or ``None`` without a multiplier.

    A multiplier without a number, or beside ``quota:cpu_shares``, gives no weight and is logged.
    Such a server may be older than the installation of cpu-tiers, and must still
    start again.
    """
    if MULTIPLIER not in flavor.extra_specs:
        return None
    try:
        return domain_shares(to_flavor(flavor))
    except InvalidInput as error:
        LOG.error("The guest gets no weight by its %s: %s", MULTIPLIER, error)
        return None


def with_plain_shares(flavor: objects.Flavor) -> objects.Flavor:
    """Return a flavor whose ``quota:cpu_shares`` is the weight by its multiplier."""
    shares = multiplied_shares(flavor)
    if shares is None:
        return flavor
    plain = flavor.obj_clone()  # the caller's flavor is the one that Nova saves
    plain.extra_specs = {**flavor.extra_specs, SHARES: str(shares)}
    return plain


def _wrap(update_quota_xml: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update_quota_xml)
    def weighted(instance: Any, xml_doc: Any) -> Any:
        """Set the weight of a guest that migrates live, also if the guest had none."""
        shares = multiplied_shares(instance.flavor)
        if shares is None:
            return update_quota_xml(instance, xml_doc)
        set_shares(xml_doc, shares)
        return xml_doc

    return weighted


LIVE_MIGRATION = Seam(
    module="nova.virt.libvirt.migration",
    path="_update_quota_xml",
    parameters=("instance", "xml_doc"),
    wrap=_wrap,
)
"""Nova removes ``<shares>`` of a guest whose flavor has no ``quota:cpu_shares``."""
