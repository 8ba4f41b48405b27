"""``[api]``: the flavors and images that nova-api refuses."""

from oslo_config import cfg

GROUP = "api"

OPTIONS = [
    cfg.BoolOpt(
        "refuse_faulty_flavors",
        default=False,
        help="""
Answer 400 to a request to create a server, or to resize a server, with a
flavor that has a fault by the rules of cpu-tiers, in all microversions.
The answer has every fault of the flavor and of the image. A rebuild is
refused only if the new image brings a fault. ``cpu-tiers flavor check``
finds the same faults.

nova-api reads this option. The rules apply whether or not nova-scheduler
requests VCPU_SHARES: with this option, ``quota:cpu_shares=16384`` is
refused, which an unmodified Nova accepts. The faults of the query for NUMA
nodes, such as an amount of memory beside the nodes, are refused only if
``query_placement_for_numa`` is on in the nova.conf of nova-api, too: without
the query, such a server runs. Servers that exist can be moved, evacuated
and unshelved whatever faults their flavors have.

If the option is off, nova-scheduler refuses faulty flavors for new
servers, and such a server ends in the status ERROR.

Related options:

* ``[filter_scheduler] query_placement_for_vcpu_shares``
* ``[filter_scheduler] query_placement_for_numa``
""",
    )
]
