"""What would end each wrapper: the fact or the extension point, and where it is missing (law L7).

docs/seams.rst has the table. A wrapper is named by its module and by the function of Nova.
"""

HERE = "the provider tree"
NOVA = "Nova"
PLACEMENT = "Placement"

_REFUSAL = "an extension point that is called with flavor and image, as for a single extra spec"
_FILTER = "request filters of other distributions, which heal and quotas do not call"
_MIXED = "the specifications of mixed CPUs and of emulator threads"
_RECORD = "a notification with the queries, the hosts of each filter and the weights"
_BEST = "a weigher for the candidates of a host"
_PORTS = "a query of the microversion 1.39, for any one of several traits of a port"
_CELLS = "a choice of host cells by the candidate's NUMA nodes"

ENDS: dict[str, tuple[str, str]] = {
    "candidate_order._get_sorted_hosts": (NOVA, _BEST),
    "candidate_order.consume_from_request": (NOVA, _BEST),
    "cpu_policies._translate_pinning_policies": (NOVA, _MIXED),
    "cpu_policies.get_emulator_thread_policy_constraint": (NOVA, _MIXED),
    "cpu_policies.numa_get_constraints": (NOVA, _MIXED),
    "custom_names.get_allocation_candidates": (
        PLACEMENT,
        "no candidates in place of an error 400 for a name that no provider has",
    ),
    "decisions.claim_resources": (NOVA, _RECORD),
    "decisions.get_filtered_objects": (NOVA, _RECORD),
    "decisions.get_weighed_objects": (NOVA, _RECORD),
    "decisions.resources_from_request_spec": (NOVA, _RECORD),
    "decisions.select_destinations": (NOVA, _RECORD),
    "features.setup_profiler": (NOVA, "an extension point of nova-api after nova.conf is read"),
    "flavor_admission._validate_and_build_base_options": (NOVA, _REFUSAL),
    "flavor_admission._validate_flavor_image_numa_pci": (NOVA, _REFUSAL),
    "flavor_admission._validate_numa_rebuild": (NOVA, _REFUSAL),
    "guest_weight._update_quota_xml": (NOVA, "the specification of CPU performance levels"),
    "host_traits.from_request_spec": (NOVA, _FILTER),
    "joined_answers.get_allocation_candidates": (
        HERE,
        "NUMA nodes on every host of the cloud: then no second query is needed",
    ),
    "lacking_constraints.get_allocation_candidates": (PLACEMENT, "a reason in an empty answer"),
    "next_candidate._get_alternate_hosts": (NOVA, "alternates on the same host"),
    "next_candidate._get_sorted_hosts": (NOVA, "a claim of the host's next candidate"),
    "next_candidate.claim_resources": (NOVA, "a claim of the host's next candidate"),
    "numa_fit.consume_from_request": (NOVA, _CELLS),
    "numa_fit.numa_fit_instance_to_host": (NOVA, _CELLS),
    "numa_pinning._move_claim": (NOVA, "a claim by the allocations, which Nova passes on already"),
    "numa_pinning.instance_claim": (
        NOVA,
        "a claim by the allocations, which Nova passes on already",
    ),
    "numa_query.resources_from_request_spec": (NOVA, _FILTER),
    "oversold_claims.claim_resources": (
        PLACEMENT,
        "a claim that locks the provider (:doc:`upstream/oversold-providers`)",
    ),
    "port_queries.get_allocation_candidates": (NOVA, _PORTS),
    "port_traits.fill_provider_mapping_based_on_allocation": (NOVA, _PORTS),
    "port_traits.from_request_groups": (NOVA, _PORTS),
    "port_traits.from_request_spec": (NOVA, _PORTS),
    "port_traits.remove_resources_from_instance_allocation": (NOVA, _PORTS),
    "refused_candidates._get_sorted_hosts": (
        NOVA,
        "filters that keep the candidates that they refuse for the next server",
    ),
    "resource_request.from_request_spec": (NOVA, _FILTER),
    "scores._get_all_host_states": (NOVA, "host states with the provider summaries"),
    "scores.consume_from_request": (NOVA, "a call of the weighers after each claim"),
    "share_names.get_allocation_candidates": (
        HERE,
        "one name of VCPU_SHARES on all hosts, after ``cpu-tiers reshape rename``",
    ),
    "tracker_run._update_to_placement": (
        NOVA,
        "an argument of ``update_provider_tree`` that tells a start",
    ),
}
