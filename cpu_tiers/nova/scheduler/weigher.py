"""The weigher of nova-scheduler, which scores hosts by their whole provider trees.

nova.conf names only this class. Its constructor installs the seams of the features that
nova.conf switches on (:mod:`cpu_tiers.nova.scheduler.features`)::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import add
from typing import Any

from nova import objects
from nova.scheduler import utils, weights
from nova.scheduler.filters.utils import aggregate_values_from_key
from oslo_log import log as logging

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.conf.weigher import idle_names
from cpu_tiers.nova import options
from cpu_tiers.nova.notes import host_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import HostState
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.scheduler.scores import RequestScores

LOG = logging.getLogger(__name__)

MULTIPLIER = "resource_provider_weight_multiplier"
TRAIT_MULTIPLIER = "resource_provider_trait_weight_multiplier"


class ResourceProviderWeigher(weights.BaseHostWeigher):
    """Weigh hosts by the score of :mod:`cpu_tiers.weights` and by soft traits. Higher is better.

    Each part of a weight has a multiplier of its own, so Nova's multiplier of the weigher is 1.
    """

    # With these bounds, nova.weights.normalize leaves every weight as it is, also beyond the
    # bounds. Without them, it would stretch the weights of each request to 0 to 1.
    minval = 0.0
    maxval = 1.0

    def __init__(self) -> None:
        """Register the options of cpu-tiers and turn on the features of nova-scheduler.

        Nova's ``HostManager`` creates each weigher once, when nova-scheduler starts.

        :raises SeamMismatch: cpu-tiers does not fit the installed Nova.
        :raises ConfigFileValueError: an option of cpu-tiers is malformed.
        :raises InvalidInput: a trait is preferred and avoided.
        """
        options.register(filter_scheduler)
        options.register(weigher)
        SCHEDULER.start()
        weigher.request_traits(CONF.filter_scheduler, {})
        for line in idle_names(CONF.filter_scheduler):
            LOG.warning("%s", line)

    def weigh_objects(
        self, weighed_obj_list: Sequence[Any], weight_properties: objects.RequestSpec
    ) -> list[float]:
        """Return the weights of the hosts, with their multipliers.

        All weights are 0 if every multiplier is 0, if Nova did not ask Placement for
        candidates, as in a rebuild, or if a weight cannot be worked out.
        """
        return _weights([weighed.obj for weighed in weighed_obj_list])

    def _weigh_object(
        self, host_state: HostState, weight_properties: objects.RequestSpec
    ) -> float:
        """Return the weight of a host; Nova's ``BaseWeigher`` declares the method abstract."""
        return _weights([host_state])[0]


def _metadata_keys(hosts: Iterable[HostState]) -> set[str]:
    """Return the metadata keys of the hosts' aggregates.

    Hosts share their aggregates, so looking at each aggregate once costs little.
    """
    aggregates = {id(group): group for host in hosts for group in host.aggregates}
    return {key for group in aggregates.values() for key in group.metadata}


def _weights(hosts: Sequence[HostState]) -> list[float]:
    weights = [0.0] * len(hosts)
    scores: RequestScores | None = host_of(hosts[0]).scores
    if scores is None:
        return weights
    keys = _metadata_keys(hosts)
    parts: dict[str, Callable[[Sequence[HostState]], list[float]]] = {
        MULTIPLIER: scores.of_hosts,
        TRAIT_MULTIPLIER: scores.of_soft_traits,
        **{option: partial(scores.nearness, option) for option in weigher.NEARNESS},
    }
    for option, values_of in parts.items():
        if not (CONF.filter_scheduler[option] or option in keys):
            continue
        multipliers = _multipliers(option, hosts)
        if any(multipliers) and any(values := values_of(hosts)):
            products = (
                multiplier * value if value else 0.0
                for multiplier, value in zip(multipliers, values, strict=True)
            )
            weights = list(map(add, weights, products))
    return weights


def _multipliers(option: str, hosts: Sequence[HostState]) -> list[float]:
    """Return the multiplier of each host, from its aggregates or else from nova.conf.

    Nova's function logs a line for a malformed number, and for several numbers. Many hosts have
    the numbers of one aggregate, so the function is called once for all hosts with equal numbers.
    """
    numbers = [frozenset(aggregate_values_from_key(host, option)) for host in hosts]
    default = CONF.filter_scheduler[option]
    known = {
        host_numbers: utils.get_weight_multiplier(host, option, default)
        for host_numbers, host in dict(zip(numbers, hosts, strict=True)).items()
    }
    return [known[host_numbers] for host_numbers in numbers]
