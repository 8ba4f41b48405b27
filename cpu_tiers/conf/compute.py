"""``[compute]``: whether a host reports its NUMA nodes."""

from oslo_config import cfg

GROUP = "compute"

OPTIONS = [
    cfg.BoolOpt(
        "enable_numa_reporting_to_placement",
        default=None,
        help="""
Report the NUMA nodes of this host to Placement, each with its CPUs and memory.

* Not set: the host reports CPUs and memory as a whole, and takes both servers
  with a NUMA topology and servers without. For the time of an upgrade: decide
  for each host.
* ``false``: the same, but servers with a NUMA topology do not land here.
* ``true``: CPUs and memory are reported for each NUMA node and page size.
  Servers without a NUMA topology do not land here.

``true`` is one-way: a host that reports its NUMA nodes cannot go back.

Related options:

* ``[DEFAULT] reserved_host_cpus``, ``[DEFAULT] reserved_host_memory_mb`` and
  ``[DEFAULT] reserved_huge_pages``
""",
    ),
]
