"""The features of cpu-tiers in nova-scheduler.

nova-scheduler has features only where ``[filter_scheduler] weight_classes`` names the
weigher of cpu-tiers, which Nova creates when nova-scheduler starts.
"""

from oslo_config import cfg

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.nova.features import CPU_POLICIES, Attribute, Feature, Service

_NAMES = "cpu_tiers.nova.custom_names:SEAM"
_TRANSLATORS = "cpu_tiers.nova.scheduler.resource_request:SEAM"

_REQUEST = "nova.scheduler.utils:ResourceRequest"
_SAME_SUBTREE = Attribute(_REQUEST, "_same_subtree", list)
_ROOT_REQUIRED = Attribute(_REQUEST, "_root_required", set)
_GROUPS = Attribute(_REQUEST, "_rg_by_id", dict)

_HOST = "nova.scheduler.host_manager:HostState"
_CANDIDATES = Attribute(_HOST, "allocation_candidates", list, ("host", "node", "cell"))
_HOSTS = "nova.scheduler.host_manager:HostManager"
_AGGREGATES = Attribute(_HOSTS, "_get_aggregates_info")
_OF_NODES = (
    Attribute(_REQUEST, "_root_forbidden", set),
    Attribute(_REQUEST, "cpu_pinning_requested", bool),
    Attribute(_HOST, "pci_stats"),
    Attribute("nova.pci.stats:PciDeviceStats", "pools"),
)


def _weighs(conf: cfg.ConfigOpts) -> bool:
    multipliers = ("resource_provider_weight_multiplier", *weigher.NEARNESS)
    return any(conf[filter_scheduler.GROUP][option] for option in multipliers)


def _names_constraints(conf: cfg.ConfigOpts) -> bool:
    options = conf[filter_scheduler.GROUP]
    is_on: bool | None = options.name_lacking_constraints
    return bool(options.query_placement_for_vcpu_shares if is_on is None else is_on)


def _has_translators(_conf: cfg.ConfigOpts) -> bool:
    """Tell whether nova-scheduler has to call a translator beside the translator of shares."""
    from cpu_tiers.nova.scheduler import resource_request

    translators = resource_request.scheduler_translators()
    return bool(resource_request.without_shares(translators))


SCHEDULER = Service(
    name="nova-scheduler",
    features=(
        Feature(
            name="weigher",
            # Not only where the multiplier in nova.conf differs from 0: the metadata of an
            # aggregate can set another multiplier at any time.
            switch="``[filter_scheduler] weight_classes`` names the weigher",
            wrappers=("cpu_tiers.nova.scheduler.scores:SEAMS",),
            attributes=(_CANDIDATES,),
            is_needed=_weighs,
        ),
        Feature(
            name="nearness",
            option=f"filter_scheduler.{weigher.SAME_AGGREGATE}",
            wrappers=(),
            attributes=(_AGGREGATES,),
        ),
        Feature(
            name="vCPU shares",
            option="filter_scheduler.query_placement_for_vcpu_shares",
            wrappers=(_TRANSLATORS, _NAMES),
            attributes=(_SAME_SUBTREE,),
        ),
        Feature(
            name="further translators",
            condition=_has_translators,
            switch="another distribution has a translator (:doc:`extending`)",
            wrappers=(_TRANSLATORS, _NAMES),
            attributes=(_SAME_SUBTREE,),
        ),
        Feature(
            name="host traits",
            option="filter_scheduler.require_host_traits",
            wrappers=("cpu_tiers.nova.scheduler.host_traits:SEAM", _NAMES),
            attributes=(_ROOT_REQUIRED,),
        ),
        Feature(
            name="port traits",
            option="filter_scheduler.query_placement_for_port_traits",
            wrappers=("cpu_tiers.nova.scheduler.port_traits:SEAMS", _NAMES),
            attributes=(_SAME_SUBTREE, _GROUPS),
        ),
        Feature(
            name="NUMA query",
            option="filter_scheduler.query_placement_for_numa",
            wrappers=(
                "cpu_tiers.nova.scheduler.numa.numa_query:SEAMS",
                _NAMES,
                "cpu_tiers.nova.scheduler.numa.joined_answers:SEAM",
                "cpu_tiers.nova.numa.numa_fit:SEAMS",
                "cpu_tiers.nova.numa.numa_fit:CONSUMES",
                "cpu_tiers.nova.scheduler.numa.candidate_order:SEAMS",
                "cpu_tiers.nova.scheduler.numa.next_candidate:SEAMS",
            ),
            attributes=(_SAME_SUBTREE, _ROOT_REQUIRED, _GROUPS, _CANDIDATES, *_OF_NODES),
        ),
        Feature(
            name="excess claims",
            option="filter_scheduler.give_back_oversold_claims",
            wrappers=("cpu_tiers.nova.scheduler.oversold_claims:SEAMS",),
        ),
        Feature(
            name="lacking constraints",
            condition=_names_constraints,
            switch="``[filter_scheduler] name_lacking_constraints``, on beside"
            " ``query_placement_for_vcpu_shares``",
            wrappers=("cpu_tiers.nova.scheduler.reasons.lacking_constraints:SEAM",),
        ),
        Feature(
            name="decision record",
            option="filter_scheduler.decision_record_file",
            wrappers=("cpu_tiers.nova.scheduler.reasons.decisions:SEAMS",),
        ),
        CPU_POLICIES,
    ),
)
