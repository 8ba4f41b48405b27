"""``[compute]``: reports of NUMA nodes, CPU policies, and changes of the tier of a server."""

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
    cfg.StrOpt(
        "live_tier_change",
        choices=[
            ("refuse", "without room on the host: answer 409, which says what the host lacks"),
            ("resize", "without room on the host: resize as Nova does, with a power-off"),
        ],
        help="""
Carry out the resize of an ACTIVE server while the server runs, on its host,
if the two flavors differ in nothing but the tier: ``quota:cpu_shares``,
``quota:cpu_shares_multiplier`` and ``resources:CUSTOM_VCPU_SHARES``. The
value says what happens if the server cannot get the shares where it runs.
Not set: each resize is Nova's own.

nova-api and nova-compute read this option. Set the option on the compute
hosts first: by a trait, a host tells nova-api that its nova-compute changes
the weight of a running guest. nova-api treats other hosts as hosts without
room. Before turning the option off, confirm or revert the resizes of servers
in the status VERIFY_RESIZE.

Related options:

* ``[filter_scheduler] query_placement_for_vcpu_shares``
* ``[filter_scheduler] give_back_oversold_claims``, for nova-api
* ``[libvirt] report_vcpu_shares``
* ``[DEFAULT] resize_confirm_window``
""",
    ),
]
