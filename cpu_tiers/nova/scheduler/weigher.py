"""nova-scheduler: hosts weighed over their provider trees.

The one class that nova.conf names; what else the scheduler needs of ours is
installed with it::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Sequence
from typing import Any

from nova import objects
from nova.scheduler import utils, weights

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import cpu_policies, numa_fit, options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import (
    candidate_order,
    custom_names,
    joined_answers,
    numa_query,
    resource_request,
    same_host_resize,
    scores,
)
from cpu_tiers.nova.seams import install

MULTIPLIER = "resource_provider_weight_multiplier"

_SEAMS = (
    *cpu_policies.SEAMS,
    resource_request.CLAIMS,
    custom_names.SEAM,
    *scores.SEAMS,
    *numa_fit.SEAMS,
    numa_fit.CONSUMES,
    *same_host_resize.SEAMS,
    # Around those: each of several queries has its names made, and a host's candidates are
    # chosen anew once what the first one has is consumed.
    *numa_query.SEAMS,
    joined_answers.SEAM,
    *candidate_order.SEAMS,
)


class ResourceProviderWeigher(weights.BaseHostWeigher):
    """Higher is better: the score of :mod:`cpu_tiers.weights`, from 0 to 1.

    The bounds keep Nova from stretching the scores of one request to 0 and 1.
    """

    minval = 0.0
    maxval = 1.0

    def __init__(self) -> None:
        """Install what the scheduler needs.

        :raises SeamMismatch: we do not fit this Nova; nothing is wrapped.
        """
        options.register(filter_scheduler)
        install(_SEAMS)

    def weight_multiplier(self, host_state: Any) -> float:
        """Return the option, or what an aggregate of the host says instead."""
        configured = CONF.filter_scheduler.resource_provider_weight_multiplier
        multiplier: float = utils.get_weight_multiplier(host_state, MULTIPLIER, configured)
        return multiplier

    def weigh_objects(
        self, weighed_obj_list: Sequence[Any], weight_properties: objects.RequestSpec
    ) -> list[float]:
        """Return the scores; all 0 where none counts or Placement was not asked."""
        hosts = [weighed.obj for weighed in weighed_obj_list]
        found = hosts[0].placement_answer
        if found is None or not self._counts(hosts):
            return [0.0] * len(hosts)
        score = found.forest.score
        return [score(host.uuid) for host in hosts]

    def _weigh_object(self, host_state: Any, weight_properties: objects.RequestSpec) -> float:
        """Return the score of one host, as Nova's abstract class wants it."""
        score: float = host_state.placement_answer.forest.score(host_state.uuid)
        return score

    def _counts(self, hosts: Sequence[Any]) -> bool:
        """Tell whether the score of any host is multiplied by other than 0.

        That is asked for every request of a scheduler that does not weigh by
        us, so aggregates, which hosts share, are looked at once.
        """
        if not CONF.filter_scheduler.resource_provider_weight_multiplier:
            aggregates = {id(one): one for host in hosts for one in host.aggregates}
            if not any(MULTIPLIER in one.metadata for one in aggregates.values()):
                return False
        return any(map(self.weight_multiplier, hosts))
