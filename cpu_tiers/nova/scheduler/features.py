"""The features of cpu-tiers in nova-scheduler.

nova-scheduler has features only where ``[filter_scheduler] weight_classes`` names the
weigher of cpu-tiers, which Nova creates when nova-scheduler starts.
"""

from oslo_config import cfg

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model import names
from cpu_tiers.nova import custom_names
from cpu_tiers.nova.attributes import (
    CANDIDATES,
    GROUPS,
    OF_NUMA_QUERY,
    ROOT_REQUIRED,
    SAME_SUBTREE,
)
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service, is_always_on, of_option
from cpu_tiers.nova.numa import numa_fit
from cpu_tiers.nova.scheduler import (
    host_traits,
    oversold_claims,
    port_traits,
    resource_request,
    scores,
    share_names,
)
from cpu_tiers.nova.scheduler.numa import (
    candidate_order,
    joined_answers,
    next_candidate,
    numa_query,
    refused_candidates,
)
from cpu_tiers.nova.scheduler.reasons import decisions, lacking_constraints


def _queries_shares(conf: cfg.ConfigOpts) -> bool:
    is_on: bool = conf[filter_scheduler.GROUP].query_placement_for_vcpu_shares
    return is_on


def _weighs(conf: cfg.ConfigOpts) -> bool:
    return bool(conf[filter_scheduler.GROUP].resource_provider_weight_multiplier)


def _queries_both_names(conf: cfg.ConfigOpts) -> bool:
    return names.VCPU_SHARES == "VCPU_SHARES" and _queries_shares(conf)


def _names_constraints(conf: cfg.ConfigOpts) -> bool:
    is_on: bool | None = conf[filter_scheduler.GROUP].name_lacking_constraints
    return _queries_shares(conf) if is_on is None else is_on


def _has_translators(_conf: cfg.ConfigOpts) -> bool:
    """Tell whether nova-scheduler has to call a translator beside the translator of shares.

    :raises ExtensionError: a translator does not load.
    """
    translators = resource_request.scheduler_translators()
    return bool(resource_request.without_shares(translators))


WEIGHER = Feature(
    name="weigher",
    # Not only where the multiplier in nova.conf differs from 0: the metadata of an aggregate can
    # set another multiplier at any time.
    switch="``[filter_scheduler] weight_classes`` names the weigher",
    seams=scores.SEAMS,
    attributes=(CANDIDATES,),
    is_on=is_always_on,
    is_needed=_weighs,
)
VCPU_SHARES = of_option(
    "vCPU shares",
    "filter_scheduler.query_placement_for_vcpu_shares",
    (resource_request.CLAIMS, custom_names.SEAM),
    (SAME_SUBTREE,),
)
SHARE_NAMES = Feature(
    name="both names of vCPU shares",
    switch=(
        "``[filter_scheduler] query_placement_for_vcpu_shares``, and os-resource-classes contains"
        " VCPU_SHARES"
    ),
    seams=(share_names.SEAM,),
    is_on=_queries_both_names,
)
TRANSLATORS = Feature(
    name="further translators",
    switch="another distribution has a translator (:doc:`extending`)",
    seams=(resource_request.CLAIMS, custom_names.SEAM),
    attributes=(SAME_SUBTREE,),
    is_on=_has_translators,
)
HOST_TRAITS = of_option(
    "host traits",
    "filter_scheduler.require_host_traits",
    (host_traits.SEAM, custom_names.SEAM),
    (ROOT_REQUIRED,),
)
PORT_TRAITS = of_option(
    "port traits",
    "filter_scheduler.query_placement_for_port_traits",
    (*port_traits.SEAMS, custom_names.SEAM),
    (SAME_SUBTREE, GROUPS),
)
NUMA_QUERY = of_option(
    "NUMA query",
    "filter_scheduler.query_placement_for_numa",
    (
        *numa_query.SEAMS,
        custom_names.SEAM,
        joined_answers.SEAM,
        *numa_fit.SEAMS,
        numa_fit.CONSUMES,
        *candidate_order.SEAMS,
        refused_candidates.SEAM,
        *next_candidate.SEAMS,
    ),
    (*OF_NUMA_QUERY, CANDIDATES),
)
OVERSOLD_CLAIMS = of_option(
    "oversold claims", "filter_scheduler.give_back_oversold_claims", oversold_claims.SEAMS
)
LACKING_CONSTRAINTS = Feature(
    name="lacking constraints",
    switch="``[filter_scheduler] name_lacking_constraints``, on beside"
    " ``query_placement_for_vcpu_shares``",
    seams=(lacking_constraints.SEAM,),
    is_on=_names_constraints,
)
DECISIONS = of_option("decision record", "filter_scheduler.decision_record_file", decisions.SEAMS)

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
