"""``[compute]``: whether a host reports its NUMA nodes to Placement."""

from oslo_config import cfg

GROUP = "compute"

OPTIONS = [
    cfg.BoolOpt(
        "enable_numa_reporting_to_placement",
        default=None,
        help="""
Report the NUMA nodes of this host to Placement, each with its CPUs and memory.

* Not set: the host reports its CPUs and memory as a whole, and accepts servers
  with and without a NUMA topology. This setting is for the time of an upgrade,
  until the operator has decided for each host.
* ``false``: the host reports its CPUs and memory as a whole, and the scheduler
  places no servers with a NUMA topology on the host.
* ``true``: the host reports its CPUs for each NUMA node, and its memory for each
  NUMA node and page size. The scheduler places no servers without a NUMA
  topology on the host.

``true`` cannot be undone: a host that has reported its NUMA nodes must go on
reporting the nodes.

Related options:

* ``[DEFAULT] reserved_host_cpus``, ``[DEFAULT] reserved_host_memory_mb`` and
  ``[DEFAULT] reserved_huge_pages``
""",
    ),
]
