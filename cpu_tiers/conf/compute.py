"""``[compute]``: reports of NUMA nodes to Placement, and CPU policies that Nova does not know."""

from oslo_config import cfg

GROUP = "compute"

OPTIONS = [
    cfg.BoolOpt(
        "enable_numa_reporting_to_placement",
        default=None,
        help="""
Report the NUMA nodes of this host to Placement, each with its CPUs and
memory.

* Not set: the host reports its CPUs and memory as a whole, and accepts
  servers with and without a NUMA topology. This setting is for the time of
  an upgrade, until the operator has decided for each host.
* ``false``: the host reports its CPUs and memory as a whole, and the
  scheduler places no servers with a NUMA topology on the host.
* ``true``: the host reports its CPUs for each NUMA node, and its memory
  for each NUMA node and page size. The scheduler places no servers without
  a NUMA topology on the host.

``true`` cannot be undone: a host that has reported its NUMA nodes must go
on reporting the nodes.

Related options:

* ``[DEFAULT] reserved_host_cpus``, ``[DEFAULT] reserved_host_memory_mb``
  and ``[DEFAULT] reserved_huge_pages``
""",
    ),
    cfg.BoolOpt(
        "extend_cpu_policies",
        default=False,
        help="""
Accept CPU policies that Nova refuses or does not know:

* ``resources:VCPU`` together with ``resources:PCPU`` on one flavor: a
  server with shared and dedicated vCPUs.
* ``hw:cpu_emulator_threads``: another name for
  ``hw:emulator_threads_policy``.
* ``hw:cpu_policy=mixed`` with a real-time mask and without
  ``hw:cpu_realtime``: the vCPUs of the mask are dedicated.
* ``hw:numa_cpus.N`` without ``hw:numa_mem.N``: the memory is divided
  evenly.

nova-api also answers 400 to a server whose flavor has
``hw:cpu_policy=mixed`` and whose image has ``hw_cpu_policy=shared``.

Set the same value for nova-api, for nova-scheduler and on every compute
host, first on the compute hosts and last for nova-api. nova-scheduler
reads this option if it has loaded the weigher of cpu-tiers, and
nova-compute if it has loaded the driver. If the option is off, Nova alone
decides about such flavors: it ignores ``hw:cpu_emulator_threads``, and
refuses all others. Before turning the option off, resize the servers with
such flavors.
""",
    ),
]
