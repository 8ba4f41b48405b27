"""The features of cpu-tiers in nova-compute.

nova-compute has features only where ``[DEFAULT] compute_driver`` names the driver of
cpu-tiers. The driver by itself, with every option off, gives a guest the weight of
``quota:cpu_shares_multiplier``, which needs no report to Placement, and looks in each
run of the resource tracker whether the host has reported NUMA nodes or shares before.
"""

from oslo_config import cfg

from cpu_tiers.conf import compute, filter_scheduler
from cpu_tiers.nova import custom_names, options
from cpu_tiers.nova.attributes import OF_HOST_REPORT, OF_NUMA_REPORTING
from cpu_tiers.nova.compute import overrides, port_traits, tracker_run
from cpu_tiers.nova.compute.guest_weight import LIVE_MIGRATION
from cpu_tiers.nova.compute.numa import numa_pinning
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service, is_always_on


def _reports_nodes(conf: cfg.ConfigOpts) -> bool:
    return bool(conf[compute.GROUP].enable_numa_reporting_to_placement)


def _queries_port_traits(conf: cfg.ConfigOpts) -> bool:
    options.register(filter_scheduler)
    is_on: bool = conf[filter_scheduler.GROUP].query_placement_for_port_traits
    return is_on


HOST_REPORT = Feature(
    name="host report",
    # Not only with an option for reporting: where the options were turned off, the inventories
    # of the host in Placement must not vanish.
    switch="``[DEFAULT] compute_driver`` names the driver",
    seams=(*overrides.SEAMS, tracker_run.SEAM),
    attributes=OF_HOST_REPORT,
    is_on=is_always_on,
)
GUEST_WEIGHTS = Feature(
    name="guest weights",
    switch="``[DEFAULT] compute_driver`` names the driver",
    seams=(LIVE_MIGRATION,),
    is_on=is_always_on,
)
NUMA_REPORTING = Feature(
    name="NUMA reporting",
    switch=(
        "``[compute] enable_numa_reporting_to_placement``, or the host must continue to report"
        " NUMA nodes"
    ),
    seams=numa_pinning.SEAMS,
    attributes=OF_NUMA_REPORTING,
    is_on=_reports_nodes,
)
PORT_TRAITS = Feature(
    name="port traits",
    switch="``[filter_scheduler] query_placement_for_port_traits``",
    seams=(*port_traits.SEAMS, custom_names.SEAM),
    is_on=_queries_port_traits,
)

COMPUTE = Service(
    name="nova-compute",
    features=(HOST_REPORT, GUEST_WEIGHTS, NUMA_REPORTING, PORT_TRAITS, CPU_POLICIES),
)
