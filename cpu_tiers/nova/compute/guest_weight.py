"""The weight of a guest by ``quota:cpu_shares_multiplier``, which Nova does not know.

Nova gives a guest a weight only by ``quota:cpu_shares``. So the driver shows Nova a flavor with
``quota:cpu_shares``, and a seam keeps the weight in a live migration. On a host that reports
shares, a guest without a valid weight gets no weight, or the least weight (decision D94).
Spec: cpu-performance-service-levels, "CPU Share Management".
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from pathlib import Path
from typing import Any

from lxml.etree import _Element
from nova import objects
from oslo_log import log as logging

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import LEAST_GUEST_WEIGHT, MULTIPLIER, SHARES, domain_shares
from cpu_tiers.libvirt.cputune import set_shares
from cpu_tiers.nova.convert import to_flavor, with_specs
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)


def with_plain_shares(flavor: objects.Flavor, server: str, *, gives_least: bool) -> objects.Flavor:
    """Return a flavor whose ``quota:cpu_shares`` is the weight that the guest must have.

    Extra specs with a fault give no tier and are logged: the server must still start again
    (decision D72). On a host that neither reports shares nor gives the least weight, a flavor
    without a multiplier is left to Nova.

    :param server: the uuid of the server, for the log.
    :param gives_least: whether a guest without a tier gets the least weight.
    """
    specs = flavor.extra_specs
    checks_shares: bool = CONF.libvirt.report_vcpu_shares or gives_least
    if MULTIPLIER not in specs and not checks_shares:
        return flavor
    weight = {SHARES: str(LEAST_GUEST_WEIGHT)} if gives_least else {}
    try:
        tier = domain_shares(to_flavor(flavor))
        if tier is not None:
            weight = {SHARES: str(tier)}
    except InvalidInput as error:
        text = "The guest gets no weight by its extra specs for shares: %s"
        LOG.error(text, error, instance_uuid=server)
        if not checks_shares:
            return flavor
    if specs.get(SHARES) == weight.get(SHARES):
        return flavor
    return with_specs(flavor, {key: v for key, v in specs.items() if key != SHARES} | weight)


def default_weight() -> int:
    """Return the weight of a guest without ``<shares>`` on this host, by its version of cgroup."""
    return 100 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1024


def _keep_weight(original: Function, instance: objects.Instance, xml_doc: _Element) -> Any:
    """Set the weight of a guest that migrates live, also if the guest had none."""
    gives_least = CONF.libvirt.least_weight_without_tier
    plain = with_plain_shares(instance.flavor, instance.uuid, gives_least=gives_least)
    if plain is instance.flavor:
        return original(instance, xml_doc)
    if SHARES in plain.extra_specs:
        set_shares(xml_doc, int(plain.extra_specs[SHARES]))
        return xml_doc
    without_weight = instance.obj_clone()  # Nova saves the instance
    without_weight.flavor = plain
    return original(without_weight, xml_doc)


LIVE_MIGRATION = seam(
    "nova.virt.libvirt.migration:_update_quota_xml", "instance, xml_doc", _keep_weight
)
"""Nova removes ``<shares>`` of a guest whose flavor has no ``quota:cpu_shares``."""
