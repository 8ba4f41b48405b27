"""``[filter_scheduler]``: what the scheduler asks for, and how it weighs."""

from oslo_config import cfg

from cpu_tiers.weights import SCORINGS

GROUP = "filter_scheduler"

OPTIONS = [
    cfg.BoolOpt(
        "query_placement_for_vcpu_shares",
        default=False,
        help="""
Ask Placement for VCPU_SHARES when a flavor sets ``quota:cpu_shares`` or
``quota:cpu_shares_multiplier``.

Switch it on once every compute that such servers may land on reports shares:
a host without that inventory is no candidate any more.

Related options:

* ``[libvirt] report_vcpu_shares``
""",
    ),
    cfg.BoolOpt(
        "query_placement_for_numa",
        help="""
Ask Placement for the NUMA nodes of servers that have some, on hosts that report
theirs or may have servers with nodes all the same; and keep servers without
nodes away from hosts that report theirs.

nova-scheduler reads it, where it has our weigher, and so do ``cpu-tiers request
show`` and ``cpu-tiers weigh``. Switch it on before the first host reports its
nodes: without it servers land there that do not fit a node. Unset,
nova-scheduler asks as ever; the commands then ask for the nodes of flavors and
images with ``hw:numa_nodes``.

Related options:

* ``[compute] enable_numa_reporting_to_placement``
* ``[placement] max_allocation_candidates`` of Placement's own configuration
""",
    ),
    cfg.FloatOpt(
        "resource_provider_weight_multiplier",
        default=0.0,
        help="""
How much the score of a host's resources and traits counts, beside the other
weighers: the score, from 0.0 to 1.0, is multiplied by this number. Negative
numbers prefer the hosts with the lowest scores. At 0.0 scores are not even
worked out.

The metadata key ``resource_provider_weight_multiplier`` of a host aggregate
overrides it for the hosts of the aggregate. Where several say different
numbers, the smallest counts.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[filter_scheduler] resource_provider_scoring``
""",
    ),
    cfg.StrOpt(
        "resource_provider_scoring",
        default="literal",
        choices=[(name, scoring.description) for name, scoring in SCORINGS.items()],
        help="""
How a host's resources and traits become a score between 0.0 and 1.0.

Related options:

* ``[filter_scheduler] resource_provider_resources``
* ``[filter_scheduler] resource_provider_traits``
""",
    ),
    cfg.ListOpt(
        "resource_provider_resources",
        default=[],
        help="""
The resource classes that count in the score, such as ``VCPU,MEMORY_MB``.
Empty: every class of the host's providers.
""",
    ),
    cfg.ListOpt(
        "resource_provider_traits",
        default=[],
        help="""
The traits that count in the score, such as ``HW_CPU_X86_AVX2``. Empty: every
trait of the host's providers. Naming only those that tell hosts apart keeps
the many that every host has out of the score.
""",
    ),
]
