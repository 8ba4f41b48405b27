"""The options of the weigher in ``[filter_scheduler]``, which only nova-scheduler reads."""

from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.weigher_types import Multiplier, ScoringName, ShapeType, WeightedNames
from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model import names
from cpu_tiers.model.similar_names import similar
from cpu_tiers.weights import REQUESTED_TO_CAPACITY, SCORINGS, RequestedToCapacity, Scoring
from cpu_tiers.weights.scoring import FunctionScoring
from cpu_tiers.weights.soft_traits import SoftTraits

GROUP = "filter_scheduler"

_PREFERRED, _AVOIDED = "resource_provider_preferred_traits", "resource_provider_avoided_traits"

SAME_HOST = "resource_provider_same_host_weight_multiplier"
SAME_AGGREGATE = "resource_provider_same_aggregate_weight_multiplier"
SAME_PROJECT = "resource_provider_same_project_weight_multiplier"
NEARNESS = (SAME_HOST, SAME_AGGREGATE, SAME_PROJECT)
"""The multipliers of nearness."""

OPTIONS = [
    cfg.Opt(
        "resource_provider_weight_multiplier",
        type=Multiplier(),
        default=0.0,
        help="""
The multiplier of the score of a host's resources and traits, beside the weights
of other weighers. A score is a number from 0.0 to 1.0. A negative multiplier
prefers the hosts with the lowest scores. With a multiplier of 0.0, no scores are
computed.

The metadata key ``resource_provider_weight_multiplier`` of a host aggregate
overrides this option for the hosts of the aggregate. If a host is in several
aggregates with different numbers, the smallest number counts.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[filter_scheduler] resource_provider_scoring``
""",
    ),
    cfg.Opt(
        "resource_provider_scoring",
        type=ScoringName([(name, each.description) for name, each in SCORINGS.items()]),
        default="literal",
        help="""
How the resources and traits of a host become a score between 0.0 and 1.0.
The name of a scoring of another distribution is a value, too.

Related options:

* ``[filter_scheduler] resource_provider_resources``
* ``[filter_scheduler] resource_provider_shape``
* ``[filter_scheduler] resource_provider_traits``
""",
    ),
    cfg.Opt(
        "resource_provider_resources",
        type=WeightedNames(),
        default=[],
        help="""
The resource classes that count in the score, such as ``VCPU,MEMORY_MB=2``.
If the list is empty, every class of the host's providers counts. A class
has the weight 1 or a weight from 0 to 1000, which ``best-fit`` and
``fragmentation`` ignore.
""",
    ),
    cfg.Opt(
        "resource_provider_shape",
        type=ShapeType(),
        default="0=1,100=0",
        help="""
The points of the function of the scoring ``requested-to-capacity``: how
many percent of the capacity of a resource class are in use with the server,
from 0 to 100, and the part of the class in the score, from 0 to 1.
``0=1,100=0`` prefers empty hosts, and ``0=0,100=1`` full hosts.

The metadata key ``resource_provider_shape`` of a host aggregate overrides
this option for the hosts of the aggregate. If a host is in several
aggregates with different shapes, the shape with the lowest score counts.
""",
    ),
    cfg.ListOpt(
        "resource_provider_traits",
        default=[],
        help="""
The traits that count in the score, such as ``HW_CPU_X86_AVX2``. If the list
is empty, every trait of the host's providers counts. Name the traits by
which your hosts differ: the many traits that all hosts have make the scores
nearly equal.
""",
    ),
    cfg.Opt(
        "resource_provider_trait_weight_multiplier",
        type=Multiplier(),
        default=1000.0,
        help="""
The multiplier of the preferred and avoided traits of a host, beside the
weights of other weighers: the sum of the weights of its preferred traits,
minus the sum of the weights of its avoided traits. A trait of a shared pool
counts for the hosts with a candidate that uses the pool. As long as neither
nova.conf nor a flavor names a trait, no weight changes.

A flavor names further traits by ``trait:NAME=preferred`` and
``trait:NAME=avoided``, with a weight by ``trait:NAME=avoided:2.5``; its
weight of a trait counts in place of the weight in nova.conf, and
``preferred:0`` makes the trait count nothing. A host aggregate overrides
this option as it does ``resource_provider_weight_multiplier``.

Related options:

* ``[filter_scheduler] host_subset_size``: above 1, no preference is strict
* ``[filter_scheduler] resource_provider_avoided_traits``
* ``[filter_scheduler] resource_provider_preferred_traits``
""",
    ),
    cfg.Opt(
        "resource_provider_avoided_traits",
        type=WeightedNames(are_prefixes=True),
        default=[],
        help="""
Traits of hosts that servers avoid, whatever their flavor. An entry is the
name of a trait, or the beginning of names with ``*``, and has the weight 1
or a weight from 0 to 1000, such as ``CUSTOM_OLD=1.5``. If several entries
are true of a trait, the full name counts, or else the longest beginning.
``CUSTOM_PRESSURE_*`` avoids the hosts that ``cpu-tiers host pressure`` marks.
""",
    ),
    cfg.Opt(
        "resource_provider_preferred_traits",
        type=WeightedNames(are_prefixes=True),
        default=[],
        help="""
Traits of hosts that servers prefer, whatever their flavor, in the form of
``resource_provider_avoided_traits``. No entry may be in both options.
""",
    ),
    cfg.Opt(
        SAME_HOST,
        type=Multiplier(),
        default=0.0,
        help="""
The weight of the present host of a server that is moved, if this host is a
candidate. A host aggregate overrides this option as it does
``resource_provider_weight_multiplier``.
""",
    ),
    cfg.Opt(
        SAME_AGGREGATE,
        type=Multiplier(),
        default=0.0,
        help="""
The weight of hosts that are near the present host of a server that is
moved. A host has the whole weight if it is in an aggregate with the present
host for each key of ``resource_provider_same_aggregate_keys``, and
otherwise the part of these keys. A host aggregate overrides this option as
it does ``resource_provider_weight_multiplier``.
""",
    ),
    cfg.ListOpt(
        "resource_provider_same_aggregate_keys",
        default=[],
        help="""
The metadata keys of the host aggregates that group hosts by place, such as
``rack,shard``.

Related options:

* ``[filter_scheduler] resource_provider_same_aggregate_weight_multiplier``
""",
    ),
    cfg.Opt(
        SAME_PROJECT,
        type=Multiplier(),
        default=0.0,
        help="""
The weight of hosts in an aggregate of the project of the server: its
metadata have the project in a key that begins with ``filter_tenant_id``. A
host aggregate overrides this option as it does
``resource_provider_weight_multiplier``.
""",
    ),
]


def configured_scoring(options: Any) -> Scoring:
    """Return the scoring that nova.conf names.

    :param options: the values of ``[filter_scheduler]``.
    :raises ExtensionError: a scoring of another distribution does not load.
    """
    name = options.resource_provider_scoring
    return _of_options(options).get(name) or _of_others()[name]


def configured_scorings(options: Any) -> dict[str, Scoring]:
    """Return all scorings by name.

    :param options: the values of ``[filter_scheduler]``.
    :raises ExtensionError: a scoring of another distribution does not load.
    """
    built_in, others = _of_options(options), _of_others()
    return built_in | {name: others[name] for name in others if name not in built_in}


def _of_options(options: Any) -> dict[str, Scoring]:
    shaped = RequestedToCapacity(options.resource_provider_shape)
    return {**SCORINGS, REQUESTED_TO_CAPACITY: shaped}


def _of_others() -> dict[str, Scoring]:
    functions = extensions.load(extensions.SCORINGS)
    return {name: FunctionScoring(function) for name, function in functions.items()}


def class_weights(options: Any) -> dict[str, float]:
    """Return the weights of the resource classes that count, by the names that cpu-tiers uses."""
    weights = options.resource_provider_resources
    return {names.as_known(name): weight for name, weight in weights.items()}


def request_traits(options: Any, extra_specs: Mapping[str, str]) -> SoftTraits:
    """Return the preferred and the avoided traits for a server.

    :param options: the values of ``[filter_scheduler]``.
    :param extra_specs: of the flavor of the server.
    :raises InvalidInput: a trait is in both options.
    """
    preferred, avoided = options[_PREFERRED], options[_AVOIDED]
    faults = FaultList()
    for name in preferred.keys() & avoided.keys():
        where = f"nova.conf, [filter_scheduler] {_PREFERRED} and {_AVOIDED}"
        faults.add(where, f"{name} is in both", "leave one out")
    faults.raise_if_any()
    avoided = {name: -weight for name, weight in avoided.items()}
    return SoftTraits({**preferred, **avoided}, soft_traits(extra_specs))


def idle_names(
    options: Any,
    has_class: Callable[[str], bool] = names.is_resource_class,
    has_trait: Callable[[str], bool] = names.is_trait,
) -> list[str]:
    """Return a line for each configured resource class and trait that counts for no host.

    Of soft traits, only names that Placement cannot have: no host need have the others today.

    :param options: the values of ``[filter_scheduler]``.
    :param has_class, has_trait: tell whether a host may have the class or the trait. By default
        only a name that Placement cannot have counts for no host.
    """
    lines = []
    for option, has, can_be in (
        ("resource_provider_resources", has_class, names.is_resource_class),
        ("resource_provider_traits", has_trait, names.is_trait),
        ("resource_provider_avoided_traits", names.is_trait, names.is_trait),
        ("resource_provider_preferred_traits", names.is_trait, names.is_trait),
    ):
        for name in options[option]:
            if not name.endswith("*") and not has(names.as_known(name)):
                is_class = can_be is names.is_resource_class
                known = names.STANDARD_CLASSES if is_class else names.standard_traits()
                meant = None if can_be(name) else similar(name, known)
                hint = f"; did you mean {meant}?" if meant else ""
                lines.append(f"[filter_scheduler] {option}: {name} counts for no host{hint}")
    return lines
