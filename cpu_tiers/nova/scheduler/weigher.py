"""The weigher of nova-scheduler, which scores hosts by their whole provider trees.

nova.conf names only this class. Its constructor installs the seams of the features that
nova.conf switches on (:mod:`cpu_tiers.nova.scheduler.features`)::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import logging
from collections.abc import Sequence
from typing import Any

from nova import objects
from nova.scheduler import utils, weights

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options
from cpu_tiers.nova.notes import host_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.features import SCHEDULER
from cpu_tiers.nova.scheduler.scores import RequestScores

LOG = logging.getLogger(__name__)

MULTIPLIER = "resource_provider_weight_multiplier"


class ResourceProviderWeigher(weights.BaseHostWeigher):
    """Weigh hosts by the score of :mod:`cpu_tiers.weights`, from 0 to 1. Higher is better."""

    # Without both bounds, nova.weights.normalize stretches the scores of each request so that
    # the worst host has 0 and the best host 1.
    minval = 0.0
    maxval = 1.0

    def __init__(self) -> None:
        """Register the options of cpu-tiers and turn on the features of nova-scheduler.

        Nova's ``HostManager`` creates each weigher once, when nova-scheduler starts.

        :raises SeamMismatch: cpu-tiers does not fit the installed Nova.
        :raises ConfigFileValueError: an option of cpu-tiers is malformed.
        """
        options.register(filter_scheduler)
        SCHEDULER.start()
        _warn_of_idle_names()

    def weight_multiplier(self, host_state: Any) -> float:
        """Return the multiplier from an aggregate of the host, or else from nova.conf."""
        configured = CONF.filter_scheduler.resource_provider_weight_multiplier
        multiplier: float = utils.get_weight_multiplier(host_state, MULTIPLIER, configured)
        return multiplier

    def weigh_objects(
        self, weighed_obj_list: Sequence[Any], weight_properties: objects.RequestSpec
    ) -> list[float]:
        """Return the scores of the hosts.

        All scores are 0 if every multiplier is 0, if Nova did not ask Placement for
        candidates, as in a rebuild, or if a score cannot be worked out.
        """
        hosts = [weighed.obj for weighed in weighed_obj_list]
        scores: RequestScores | None = host_of(hosts[0]).scores
        if scores is None or not self._counts(hosts):
            return [0.0] * len(hosts)
        return scores.of_hosts(hosts)

    def _weigh_object(self, host_state: Any, weight_properties: objects.RequestSpec) -> float:
        """Return the score of a host; Nova's ``BaseWeigher`` declares the method abstract."""
        scores = host_of(host_state).scores
        return 0.0 if scores is None else scores.of([host_state.uuid])[0]

    def _counts(self, hosts: Sequence[Any]) -> bool:
        """Tell whether the multiplier of any host differs from 0."""
        if not CONF.filter_scheduler.resource_provider_weight_multiplier:
            # This is every request of a cloud with the default multiplier 0.0. Hosts share
            # their aggregates, so looking at each aggregate once costs little.
            aggregates = {id(group): group for host in hosts for group in host.aggregates}
            if not any(MULTIPLIER in group.metadata for group in aggregates.values()):
                return False
        return any(map(self.weight_multiplier, hosts))


def _warn_of_idle_names() -> None:
    configured = CONF.filter_scheduler
    if configured.resource_provider_resources or configured.resource_provider_traits:
        from cpu_tiers.conf.score_names import idle_names

        for line in idle_names(configured):
            LOG.warning("%s", line)
