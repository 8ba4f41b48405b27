"""``[quota]``: what nova-api counts against the limits of a project."""

from oslo_config import cfg

GROUP = "quota"
UNIFIED_LIMITS = "nova.quota.UnifiedLimitsDriver"

OPTIONS = [
    cfg.BoolOpt(
        "count_vcpu_shares",
        default=False,
        help=f"""
Count the shares of ``quota:cpu_shares_multiplier`` against the limit
``class:CUSTOM_VCPU_SHARES`` of the project, at boot, resize and unshelving.
A request that exceeds the limit gets an answer 403. Nova itself counts only
shares that a flavor states as ``resources:CUSTOM_VCPU_SHARES``.

nova-api reads this option. The option needs Nova's unified limits
(``driver = {UNIFIED_LIMITS}``), and Keystone needs a registered limit
``class:CUSTOM_VCPU_SHARES`` of the service nova: without the registered limit,
``unified_limits_resource_strategy`` decides. The amount in use is what the
servers of the project have allocated in Placement, so nova-scheduler must
request VCPU_SHARES.

nova-conductor, which loads no part of cpu-tiers, checks the limit a second time after
hosts are chosen, and then finds what requests at the same time exceed only with
flavors that state their shares.

Related options:

* ``[filter_scheduler] query_placement_for_vcpu_shares``
* ``[quota] driver``
* ``[quota] unified_limits_resource_strategy``
""",
    )
]
