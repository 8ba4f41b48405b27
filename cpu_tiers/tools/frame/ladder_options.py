"""The step of the ladder, as far as a nova.conf tells the step."""

from oslo_config import cfg

from cpu_tiers.conf import compute, filter_scheduler, libvirt
from cpu_tiers.conf.weight_classes import loaded_weighers
from cpu_tiers.tools.tiers.ladder import SchedulerFacts

OF_THE_WEIGHER = (
    "query_placement_for_vcpu_shares",
    "query_placement_for_numa",
    "require_host_traits",
)
"""The options of ``[filter_scheduler]`` that only a loaded weigher reads."""

_OF_THE_DRIVER = (
    (libvirt.GROUP, "report_vcpu_shares"),
    (libvirt.GROUP, "least_weight_without_tier"),
    (compute.GROUP, "enable_numa_reporting_to_placement"),
)
"""Options that only the driver of cpu-tiers reads."""


def scheduler_of(conf: cfg.ConfigOpts) -> SchedulerFacts:
    """Return what nova-scheduler does for tiers, by its nova.conf."""
    options = conf[filter_scheduler.GROUP]
    return SchedulerFacts(
        loads_weigher=loaded_weighers(options.weight_classes).have_ours,
        requests_shares=bool(
            options.query_placement_for_vcpu_shares or options.require_host_traits
        ),
        requests_nodes=bool(options.query_placement_for_numa),
    )


def has_driver(conf: cfg.ConfigOpts) -> bool | None:
    """Tell whether nova-compute runs the driver of cpu-tiers, by its nova.conf.

    nova-compute does not start without ``compute_driver``. In a nova.conf without this option,
    which is thus only a part of the configuration, the options of the driver tell.

    :returns: ``None`` if nothing tells.
    """
    if conf.compute_driver:
        return bool(conf.compute_driver.startswith("cpu_tiers."))
    return any(conf[group][name] for group, name in _OF_THE_DRIVER) or None
