"""The features of cpu-tiers in nova-compute.

nova-compute has features only where ``[DEFAULT] compute_driver`` names the driver of
cpu-tiers. The driver by itself, with every option off, gives a guest the weight of
``quota:cpu_shares_multiplier``, which needs no report to Placement, and looks in each
run of the resource tracker whether the host has reported NUMA nodes or shares before.
"""

from cpu_tiers.nova.features import CPU_POLICIES, Attribute, Feature, Service

_TRACKER = "nova.compute.resource_tracker:ResourceTracker"
_DRIVER = "nova.virt.libvirt.driver:LibvirtDriver"

HOST_REPORT = Feature(
    name="host report",
    # Not only with an option for reporting: where the options were turned off, the inventories
    # of the host in Placement must not vanish.
    switch="``[DEFAULT] compute_driver`` names the driver",
    wrappers=("cpu_tiers.nova.compute.host_report:SEAMS",),
    attributes=(
        Attribute(_TRACKER, "provider_configs"),
        Attribute(_TRACKER, "reportclient"),
        Attribute(_DRIVER, "provider_tree"),
        Attribute(_DRIVER, "_host"),
    ),
)
GUEST_WEIGHTS = Feature(
    name="guest weights",
    switch="``[DEFAULT] compute_driver`` names the driver",
    wrappers=("cpu_tiers.nova.compute.guest_weight:LIVE_MIGRATION",),
)
NUMA_REPORTING = Feature(
    name="NUMA reporting",
    option="compute.enable_numa_reporting_to_placement",
    switch=(
        "``[compute] enable_numa_reporting_to_placement``, or the host must continue to report"
        " NUMA nodes"
    ),
    wrappers=("cpu_tiers.nova.compute.numa.numa_pinning:SEAMS",),
    attributes=(Attribute(_TRACKER, "provider_tree"),),
)
TIER_CHANGES = Feature(
    name="live tier changes",
    option="compute.live_tier_change",
    wrappers=("cpu_tiers.nova.compute.tier_change:SEAMS",),
)
PORT_TRAITS = Feature(
    name="port traits",
    option="filter_scheduler.query_placement_for_port_traits",
    wrappers=("cpu_tiers.nova.compute.port_traits:SEAMS", "cpu_tiers.nova.custom_names:SEAM"),
)

COMPUTE = Service(
    name="nova-compute",
    features=(
        HOST_REPORT,
        GUEST_WEIGHTS,
        NUMA_REPORTING,
        PORT_TRAITS,
        TIER_CHANGES,
        CPU_POLICIES,
    ),
)
