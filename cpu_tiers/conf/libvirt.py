"""``[libvirt]``: the inventory of VCPU_SHARES that nova-compute reports, and weights of guests."""

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
    cfg.IntOpt(
        "emulator_overhead_percent",
        default=0,
        min=0,
        max=1000,
        help="""
The CPU time of the own threads of QEMU, in percent of the CPU time of the
vCPUs: emulator threads, I/O threads and vhost threads of a guest. 12 means that
QEMU uses 0.12 CPUs while one vCPU of the guest uses a CPU. 0 does not count
these threads.

The kernel takes this time from the CPU time of the guest. With 12:

* nova-compute reserves 12 of 112 VCPU_SHARES that are not reserved already: the
  ``reserved`` of the inventory. Placement then grants fewer claims of
  VCPU_SHARES. Claims of existing servers stay as they are, also if they
  exceed the capacity now.
* The floors and the entitlements of ``cpu-tiers host show``, ``host audit`` and
  ``host watch`` are those of the vCPUs without the own threads of QEMU.

Set the same number on every host. docs/contributor/measured.rst has measured figures.

Related options:

* ``[libvirt] report_vcpu_shares``
* ``[libvirt] vcpu_share_multiplier``
""",
    ),
    cfg.BoolOpt(
        "least_weight_without_tier",
        default=False,
        help="""
Give a guest whose flavor has no tier the least weight, 2, in place of the
default weight of the kernel: 1024 on cgroup v1, and 100 on cgroup v2.

Without this option, the same server has ten times the weight of
``quota:cpu_shares_multiplier=100`` on a host with cgroup v1, and once this
weight on a host with cgroup v2. With this option, guests without a tier get
the CPU time that guests with a tier do not use, on every host.

A flavor has a tier if the flavor has valid ``quota:cpu_shares_multiplier`` or
``quota:cpu_shares``. The weight counts for the guest as a whole, whatever the
number of its vCPUs, and also for dedicated vCPUs.

A guest that runs gets the weight at its next hard reboot, resize or
migration, or by ``cpu-tiers host audit --fix``. Set the same value on every
compute host: at a live migration the host that the guest leaves decides.

Related options:

* ``[libvirt] report_vcpu_shares``
""",
    ),
]
