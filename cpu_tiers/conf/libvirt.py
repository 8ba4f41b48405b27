"""``[libvirt]``: the inventory of VCPU_SHARES that nova-compute reports."""

from oslo_config import cfg

GROUP = "libvirt"

OPTIONS = [
    cfg.BoolOpt(
        "report_vcpu_shares",
        default=False,
        help="""
Report an inventory of VCPU_SHARES for this host: ``vcpu_share_multiplier``
for each shared CPU, with the allocation ratio of VCPU.

A host that has reported shares must go on reporting shares: servers have
allocations of the inventory, which would be lost.

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
The shares of a shared host CPU, before the allocation ratio of VCPU.

Set the same number and the same ratio on every host, so that a tier means the
same on every host: a vCPU is never worth less than
``quota:cpu_shares_multiplier`` divided by (this number x
``cpu_allocation_ratio``) of a host CPU.

Related options:

* ``[libvirt] report_vcpu_shares``
* ``[DEFAULT] cpu_allocation_ratio``
""",
    ),
]
