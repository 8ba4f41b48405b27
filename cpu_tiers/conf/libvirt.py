"""``[libvirt]``: what a compute host reports."""

from oslo_config import cfg

GROUP = "libvirt"

OPTIONS = [
    cfg.BoolOpt(
        "report_vcpu_shares",
        default=False,
        help="""
Report an inventory of VCPU_SHARES for this host: ``vcpu_share_multiplier``
for each CPU that servers share, with VCPU's allocation ratio.

Once reporting was on it cannot be turned off: servers have shares allocated
that would be lost.

Related options:

* ``[libvirt] vcpu_share_multiplier``
* ``[compute] cpu_shared_set``
* ``[filter_scheduler] query_placement_for_vcpu_shares``
""",
    ),
    cfg.IntOpt(
        "vcpu_share_multiplier",
        default=100,
        min=1,
        max=10000,
        help="""
Shares that one shared host CPU stands for, before VCPU's allocation ratio.

The same number and ratio on every host make a tier mean the same everywhere:
a vCPU is never worth less than ``quota:cpu_shares_multiplier`` divided by
(this number x ``cpu_allocation_ratio``) of a host CPU.

Related options:

* ``[libvirt] report_vcpu_shares``
* ``[DEFAULT] cpu_allocation_ratio``
""",
    ),
]
