"""The modes of the ledger: a stock Nova, and Nova with cpu-tiers and certain options.

An option of nova.conf is set by an environment variable, which oslo.config reads above any file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way to run Nova's own tests.

    :param options: environment variables, by name.
    :param has_cpu_tiers: cpu-tiers is installed, and its classes are loaded.
    :param must_wrap: a run in which cpu-tiers wraps no function of Nova proves nothing.
    :param folds_nodes: tests read the amounts of NUMA nodes from the root provider.
    :param modules: patterns of the modules that run in the mode.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    has_cpu_tiers: bool = True
    must_wrap: bool = True
    folds_nodes: bool = False
    modules: Sequence[str] = ("*",)

    def runs(self, module: str) -> bool:
        """Tell whether a module of tests runs in the mode."""
        return any(fnmatchcase(module, pattern) for pattern in self.modules)


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
# Without the query, by which a server without a NUMA topology finds no host that reports NUMA
# nodes: most functional tests would end at their first server.
NUMA_REPORTING = {
    **CPU_POLICIES,
    "OS_COMPUTE__ENABLE_NUMA_REPORTING_TO_PLACEMENT": "true",
}

API = {
    **CPU_POLICIES,
    "OS_API__REFUSE_FAULTY_FLAVORS": "true",
    "OS_COMPUTE__LIVE_TIER_CHANGE": "resize",
}
QUOTA = {"OS_QUOTA__COUNT_VCPU_SHARES": "true"}

WITH_NOVA_API = (
    "nova.tests.functional.*",
    "nova.tests.unit.compute.test_api",
    "nova.tests.unit.compute.test_rpcapi",
    "nova.tests.unit.conductor.*",
    "nova.tests.unit.virt.libvirt.test_driver",
)
"""The modules in which nova-api, or what nova-api calls on other services, has a part."""

WITH_UNIFIED_LIMITS = (
    "nova.tests.functional.test_nova_manage",
    "nova.tests.functional.test_servers",
    "nova.tests.functional.test_unified_limits",
    "nova.tests.unit.compute.test_api",
    "nova.tests.unit.conductor.*",
    "nova.tests.unit.limit.*",
)
"""The modules in which a test sets the driver of unified limits, or replaces its functions."""

REAL_HOSTS = (
    "nova.tests.functional.libvirt.*",
    "nova.tests.functional.regressions.test_bug_1995153",
    "nova.tests.functional.regressions.test_bug_2140537",
    "nova.tests.functional.regressions.test_bug_2153425",
    "nova.tests.functional.test_servers_resource_request",
)
"""The modules whose hosts have NUMA nodes or providers of devices, and of the regressions those
with servers that have a NUMA topology. In most others, Nova's fake driver reports hosts with
neither."""

STOCK = "stock"
MODES = {
    mode.name: mode
    for mode in (
        Mode(name=STOCK, has_cpu_tiers=False, must_wrap=False),
        Mode(name="off", must_wrap=False),
        Mode(name="shares", options=SHARES),
        Mode(name="numa-query", options=NUMA_QUERY),
        Mode(name="numa-reporting", options=NUMA_REPORTING, folds_nodes=True),
        Mode(
            name="numa",
            options={**NUMA_QUERY, **NUMA_REPORTING},
            folds_nodes=True,
            modules=REAL_HOSTS,
        ),
        Mode(name="api", options=API, modules=WITH_NOVA_API),
        Mode(name="quota", options=QUOTA, modules=WITH_UNIFIED_LIMITS),
    )
}
"""The modes by name; each is compared with the first."""
