"""``[filter_scheduler]``: requests to Placement. :mod:`cpu_tiers.conf.weigher` has the weights."""

from oslo_config import cfg

GROUP = "filter_scheduler"

OPTIONS = [
    cfg.BoolOpt(
        "query_placement_for_vcpu_shares",
        default=False,
        help="""
Request VCPU_SHARES of Placement for servers whose flavor has
``quota:cpu_shares`` or ``quota:cpu_shares_multiplier``.

Turn this option on once every host for such servers reports shares: a host
without an inventory of VCPU_SHARES is no longer a candidate for them.

Related options:

* ``[libvirt] report_vcpu_shares``
""",
    ),
    cfg.BoolOpt(
        "query_placement_for_numa",
        help="""
Request the NUMA nodes of servers with a NUMA topology of Placement.

A server with a NUMA topology then gets a host that reports its NUMA nodes, or a
host for which ``[compute] enable_numa_reporting_to_placement`` is not set. A
server without a NUMA topology gets a host that does not report its NUMA nodes.

nova-scheduler reads this option if it has loaded the weigher of cpu-tiers, and
the commands of ``cpu-tiers`` read the option, too. Set the same value for
nova-api: with ``[api] refuse_faulty_flavors``, nova-api answers 400 to a flavor
whose NUMA nodes cannot be requested. Turn the option on before
the first host reports its nodes: otherwise the scheduler places servers on the
host that fit none of its nodes. If the option is not set, nova-scheduler sends
the queries of an unmodified Nova, and so do the commands; only ``cpu-tiers
request show`` and ``flavor check`` then request the nodes of flavors and images
with ``hw:numa_nodes``.

Related options:

* ``[compute] enable_numa_reporting_to_placement``
* ``[api] refuse_faulty_flavors``
* ``[placement] max_allocation_candidates`` of Placement's own configuration
""",
    ),
    cfg.BoolOpt(
        "require_host_traits",
        default=False,
        help="""
Place a new server only on a host that reports, as traits, the functions of
cpu-tiers that the flavor needs. A resize to another flavor counts as a new
server; all other moves go to any host, also to a host without the traits.

* ``CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER`` is required for a flavor with
  ``quota:cpu_shares_multiplier``, if ``query_placement_for_vcpu_shares`` is
  on. A host with ``[libvirt] report_vcpu_shares`` reports the trait.
* ``CUSTOM_COMPUTE_CPU_AMOUNTS`` is required for a flavor with
  ``resources:VCPU`` and ``resources:PCPU``, if ``[compute]
  extend_cpu_policies`` is on.
* ``CUSTOM_COMPUTE_CPU_EMULATOR_THREADS`` is required for a flavor with
  ``hw:cpu_emulator_threads`` and without ``hw:emulator_threads_policy``, if
  ``[compute] extend_cpu_policies`` is on.
* ``CUSTOM_COMPUTE_CPU_REALTIME_MASK`` is required for a flavor with
  ``hw:cpu_policy=mixed``, with a real-time mask and without
  ``hw:cpu_realtime``, if ``[compute] extend_cpu_policies`` is on.
* ``CUSTOM_COMPUTE_NUMA_EVEN_MEMORY`` is required for a flavor with
  ``hw:numa_cpus.N`` and without ``hw:numa_mem.N``, if ``[compute]
  extend_cpu_policies`` is on. A host with ``extend_cpu_policies`` reports
  this trait and the three traits before.

Only nova-compute with ``compute_driver = cpu_tiers.LibvirtDriver`` reports
the traits. Turn this option on after the hosts have been restarted with the
driver and their options: a host without the traits gets no new server of
such flavors.

Related options:

* ``[filter_scheduler] query_placement_for_vcpu_shares``
* ``[libvirt] report_vcpu_shares``
* ``[compute] extend_cpu_policies``
""",
    ),
    cfg.BoolOpt(
        "query_placement_for_port_traits",
        default=False,
        help="""
Place servers by the traits of ports that request no amount of Placement, and of
ports that request any one of several traits.

* A port with a QoS rule for a minimum bandwidth of 0 requests a device of its
  physical network and of its VNIC type, without an amount of bandwidth.
* ``in:A,B`` in the resource request of a port requests a device with the trait
  A or the trait B. Neutron does not write such a request itself.

If this option is off, Placement refuses the query of a server with such a
port, and the server gets no host: Nova sends a query that Placement does not
understand.

nova-scheduler reads this option if it has loaded the weigher of cpu-tiers, and
nova-compute if it has loaded the driver of cpu-tiers. Turn the option on
first on every compute host and then for nova-scheduler: on a host without the
option, the revert of a resize puts a server with such a port into ERROR,
detaching the port fails, and a port with ``in:`` cannot be attached. Placement
must have microversion 1.39 for ``in:``.
""",
    ),
    cfg.BoolOpt(
        "give_back_oversold_claims",
        default=False,
        help="""
Look after each claim whether Placement has allocated more than the
capacity of a provider, and give the claim back in this case.
nova-scheduler then claims the host again, at most three times in all, and
after that the next host. nova-api does the same with ``[compute]
live_tier_change``, and the command ``cpu-tiers allocation heal`` with the
resources that the command adds.

Placement can allocate more than the capacity if several servers are
claimed on a host at the same time. The command ``cpu-tiers placement
check`` tells whether your Placement does. Prefer ``[placement]
allocation_conflict_retry_count = 1`` in placement.conf, with which
Placement itself holds. The option here is for operators who cannot change
placement.conf. The option costs one request to Placement for each claim,
and two more requests for each provider of the claim.

If Placement does not answer such a request, the claim stays as it is.
Between a claim and its return, more than the capacity is allocated for
about a second. nova-scheduler reads this option if nova-scheduler has
loaded the weigher of cpu-tiers. Claims of nova-conductor, for a live
migration or an evacuation to a forced host, are not looked at.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[compute] live_tier_change``
* ``[placement] allocation_conflict_retry_count`` of Placement's own configuration
""",
    ),
    cfg.BoolOpt(
        "name_lacking_constraints",
        help="""
Name in the fault of a server without a host the resource classes and the
required traits without which a host would have room. If the option is not
set, it is on while ``query_placement_for_vcpu_shares`` is on.

If Placement has no candidate for a server, nova-scheduler sends the query again
without each resource class and without each required trait alone, and then
without two of them, at most 16 queries for one candidate each. The fault of the
server then says, for example, *No valid host was found. A host would have room
without one of these: 2 VGPU, the trait CUSTOM_FAST*. The users of the cloud see
the fault. If more than two constraints together leave no host, the fault has no
reason, as with Nova alone. A server that finds a host costs no further query.

For a server with dedicated CPUs, nova-scheduler sends a second query, with VCPU
in place of PCPU, while ``[workarounds] disable_fallback_pcpu_query`` is off. The
fault then names the constraints of both queries, such as *2 PCPU, 2 VCPU*, if
both answers are empty. The reason is not worked out for guests whose NUMA nodes
nova-scheduler selects from the answers to several queries. nova-scheduler reads
this option if nova-scheduler has loaded the weigher of cpu-tiers.

Related options:

* ``[filter_scheduler] query_placement_for_vcpu_shares``
* ``[filter_scheduler] weight_classes``
* ``[workarounds] disable_fallback_pcpu_query``
""",
    ),
    cfg.StrOpt(
        "decision_record_file",
        help="""
The path of the file in which nova-scheduler records each of its decisions,
one JSON document a line: the request, the queries to Placement, the hosts
that each filter removed, the parts of the weights of the best hosts, the
claims, the selected host, or the fault. ``cpu-tiers explain --server UUID
--decisions FILE`` reads the file. If the option is not set, nothing is
recorded.

The folder must exist, and the user of nova-scheduler must be allowed to
create files in the folder. The file must be no link. All processes of
nova-scheduler on a machine write the same file, and nothing bounds its
size: have logrotate rename it. A thread of its own writes the file, so
that a disk that hangs delays no server. Decisions that cannot be written
are dropped, with at most one warning in a minute. The file has the ids of
servers, and the names of flavors and of hosts, so only the user of
nova-scheduler may read the file.

nova-scheduler reads this option if nova-scheduler has loaded the weigher of
cpu-tiers.

Related options:

* ``[filter_scheduler] weight_classes``
""",
    ),
]
