"""The features of cpu-tiers in nova-scheduler.

nova-scheduler has features only where ``[filter_scheduler] weight_classes`` names the
weigher of cpu-tiers, which Nova creates when nova-scheduler starts.
"""

from oslo_config import cfg

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model import names
from cpu_tiers.nova.attributes import (
    CANDIDATES,
    GROUPS,
    OF_NUMA_QUERY,
    ROOT_REQUIRED,
    SAME_SUBTREE,
)
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service

_NAMES = "cpu_tiers.nova.custom_names:SEAM"
_CLAIMS = "cpu_tiers.nova.scheduler.resource_request:CLAIMS"


def _weighs(conf: cfg.ConfigOpts) -> bool:
    return bool(conf[filter_scheduler.GROUP].resource_provider_weight_multiplier)


def _names_constraints(conf: cfg.ConfigOpts) -> bool:
    options = conf[filter_scheduler.GROUP]
    is_on: bool | None = options.name_lacking_constraints
    return bool(options.query_placement_for_vcpu_shares if is_on is None else is_on)


def _has_translators(_conf: cfg.ConfigOpts) -> bool:
    """Tell whether nova-scheduler has to call a translator beside the translator of shares.

    :raises ExtensionError: a translator does not load.
    """
    from cpu_tiers.nova.scheduler import resource_request

    translators = resource_request.scheduler_translators()
    return bool(resource_request.without_shares(translators))


WEIGHER = Feature(
    name="weigher",
    # Not only where the multiplier in nova.conf differs from 0: the metadata of an aggregate can
    # set another multiplier at any time.
    switch="``[filter_scheduler] weight_classes`` names the weigher",
    wrappers=("cpu_tiers.nova.scheduler.scores:SEAMS",),
    attributes=(CANDIDATES,),
    is_needed=_weighs,
)
VCPU_SHARES = Feature(
    name="vCPU shares",
    option="filter_scheduler.query_placement_for_vcpu_shares",
    wrappers=(_CLAIMS, _NAMES),
    attributes=(SAME_SUBTREE,),
)
SHARE_NAMES = Feature(
    name="both names of vCPU shares",
    option="filter_scheduler.query_placement_for_vcpu_shares",
    condition=lambda _: names.VCPU_SHARES == "VCPU_SHARES",
    switch=(
        "``[filter_scheduler] query_placement_for_vcpu_shares``, and os-resource-classes contains"
        " VCPU_SHARES"
    ),
    wrappers=("cpu_tiers.nova.scheduler.share_names:SEAM",),
)
TRANSLATORS = Feature(
    name="further translators",
    condition=_has_translators,
    switch="another distribution has a translator (:doc:`extending`)",
    wrappers=(_CLAIMS, _NAMES),
    attributes=(SAME_SUBTREE,),
)
HOST_TRAITS = Feature(
    name="host traits",
    option="filter_scheduler.require_host_traits",
    wrappers=("cpu_tiers.nova.scheduler.host_traits:SEAM", _NAMES),
    attributes=(ROOT_REQUIRED,),
)
PORT_TRAITS = Feature(
    name="port traits",
    option="filter_scheduler.query_placement_for_port_traits",
    wrappers=("cpu_tiers.nova.scheduler.port_traits:SEAMS", _NAMES),
    attributes=(SAME_SUBTREE, GROUPS),
)
NUMA_QUERY = Feature(
    name="NUMA query",
    option="filter_scheduler.query_placement_for_numa",
    wrappers=(
        "cpu_tiers.nova.scheduler.numa.numa_query:SEAMS",
        _NAMES,
        "cpu_tiers.nova.scheduler.numa.joined_answers:SEAM",
        "cpu_tiers.nova.numa.numa_fit:SEAMS",
        "cpu_tiers.nova.numa.numa_fit:CONSUMES",
        "cpu_tiers.nova.scheduler.numa.candidate_order:SEAMS",
        "cpu_tiers.nova.scheduler.numa.refused_candidates:SEAM",
        "cpu_tiers.nova.scheduler.numa.next_candidate:SEAMS",
    ),
    attributes=(*OF_NUMA_QUERY, CANDIDATES),
)
OVERSOLD_CLAIMS = Feature(
    name="oversold claims",
    option="filter_scheduler.give_back_oversold_claims",
    wrappers=("cpu_tiers.nova.scheduler.oversold_claims:SEAMS",),
)
LACKING_CONSTRAINTS = Feature(
    name="lacking constraints",
    condition=_names_constraints,
    switch="``[filter_scheduler] name_lacking_constraints``, on beside"
    " ``query_placement_for_vcpu_shares``",
    wrappers=("cpu_tiers.nova.scheduler.reasons.lacking_constraints:SEAM",),
)
DECISIONS = Feature(
    name="decision record",
    option="filter_scheduler.decision_record_file",
    wrappers=("cpu_tiers.nova.scheduler.reasons.decisions:SEAMS",),
)

SCHEDULER = Service(
    name="nova-scheduler",
    features=(
        WEIGHER,
        VCPU_SHARES,
        SHARE_NAMES,
        TRANSLATORS,
        HOST_TRAITS,
        PORT_TRAITS,
        NUMA_QUERY,
        OVERSOLD_CLAIMS,
        LACKING_CONSTRAINTS,
        DECISIONS,
        CPU_POLICIES,
    ),
)
