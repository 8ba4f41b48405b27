"""The five modes of the ledger: a stock Nova, and Nova with cpu-tiers and certain options.

An option of nova.conf is set by an environment variable, which oslo.config reads above any file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way to run Nova's own tests.

    :param options: environment variables, by name.
    :param has_cpu_tiers: cpu-tiers is installed, and its classes are loaded.
    :param must_wrap: a run in which cpu-tiers wraps no function of Nova proves nothing.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    has_cpu_tiers: bool = True
    must_wrap: bool = True


CPU_POLICIES = {"OS_COMPUTE__EXTEND_CPU_POLICIES": "true"}
SHARES = {
    **CPU_POLICIES,
    "OS_FILTER_SCHEDULER__RESOURCE_PROVIDER_WEIGHT_MULTIPLIER": "1.0",
    "OS_FILTER_SCHEDULER__RESOURCE_PROVIDER_SCORING": "boring",
    "OS_FILTER_SCHEDULER__QUERY_PLACEMENT_FOR_VCPU_SHARES": "true",
    "OS_LIBVIRT__REPORT_VCPU_SHARES": "true",
}
NUMA_QUERY = {
    **CPU_POLICIES,
    "OS_FILTER_SCHEDULER__QUERY_PLACEMENT_FOR_NUMA": "true",
}
# Without the query, by which a server without a NUMA topology would find no host: most
# functional tests would end at their first server, and tests/nova has both together.
NUMA_REPORTING = {
    **CPU_POLICIES,
    "OS_COMPUTE__ENABLE_NUMA_REPORTING_TO_PLACEMENT": "true",
}

STOCK = "stock"
MODES = {
    mode.name: mode
    for mode in (
        Mode(name=STOCK, has_cpu_tiers=False, must_wrap=False),
        Mode(name="off", must_wrap=False),
        Mode(name="shares", options=SHARES),
        Mode(name="numa-query", options=NUMA_QUERY),
        Mode(name="numa-reporting", options=NUMA_REPORTING),
    )
}
"""The modes by name; each is compared with the first."""
