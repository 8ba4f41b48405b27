"""Seams that attach the scores of a scheduler request to the host states of the request.

Nova's ``HostManager._get_host_states`` builds new host states for every request, so
an attribute of a host state lives as long as the request and is not shared with
requests in other threads.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nova import objects
from nova.scheduler import utils

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import numa_query
from cpu_tiers.nova.seams import Seam
from cpu_tiers.weights import SCORINGS, Forest


class RequestScores:
    """The scores of all hosts in a scheduler request, shared by its host states.

    :param summaries: the provider summaries of Placement's answer. They are a
        snapshot from before the first server of the request was claimed.
    """

    def __init__(
        self, summaries: Mapping[str, Mapping[str, Any]], request_spec: objects.RequestSpec
    ) -> None:
        self._summaries = summaries
        self._request_spec = request_spec

    @functools.cached_property
    def forest(self) -> Forest:
        """The hosts with their scores, built when a weigher needs the first score."""
        options = CONF[filter_scheduler.GROUP]
        request = utils.ResourceRequest.from_request_spec(self._request_spec)
        return Forest(
            self._summaries,
            request.merged_resources(),
            request.all_required_traits
            | self._request_spec.root_required
            | numa_query.node_traits(self._request_spec),
            scoring=SCORINGS[options.resource_provider_scoring],
            only_resources=options.resource_provider_resources,
            only_traits=options.resource_provider_traits,
        )

    def claim(self, root: str, allocations: Mapping[str, Mapping[str, Any]]) -> None:
        """Subtract the allocations of a server, for the scores of the request's next server.

        :param root: the uuid of the root provider of the server's host.
        :param allocations: the allocations of the server, by provider uuid.
        """
        # If the first server of a request built no forest, then no weigher needed a score. The
        # later servers choose from the same hosts or fewer, so they need no score either.
        if "forest" not in self.__dict__:
            return
        amounts: dict[str, int] = {}
        for provider, allocation in allocations.items():
            # A sharing provider, such as a disk pool, is not a part of the host's tree.
            if self._summaries[provider]["root_provider_uuid"] == root:
                for name, amount in allocation["resources"].items():
                    amounts[name] = amounts.get(name, 0) + amount
        self.forest.claim(root, amounts)


def _attach_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    """Attach the scores to each host state; ``None`` for a rebuild, which asks no Placement."""

    @functools.wraps(original)
    def _get_all_host_states(
        self: Any, context: Any, spec_obj: objects.RequestSpec, provider_summaries: Any
    ) -> Iterator[Any]:
        scores = None
        if provider_summaries is not None:
            scores = RequestScores(provider_summaries, spec_obj)
        for host_state in original(self, context, spec_obj, provider_summaries):
            host_state.provider_summaries = provider_summaries
            host_state.request_scores = scores
            yield host_state

    return _get_all_host_states


def _claim(original: Callable[..., Any]) -> Callable[..., Any]:
    """Subtract the server's allocations from the scores when Nova consumes the host state."""

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        if self.request_scores is not None and self.allocation_candidates:
            # Nova's SchedulerManager._schedule claims the first candidate of the host.
            allocations = self.allocation_candidates[0]["allocations"]
            self.request_scores.claim(self.uuid, allocations)
        return result

    return consume_from_request


SEAMS = (
    Seam(
        module="nova.scheduler.manager",
        path="SchedulerManager._get_all_host_states",
        parameters=("self", "context", "spec_obj", "provider_summaries"),
        wrap=_attach_scores,
    ),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters=("self", "spec_obj"),
        wrap=_claim,
    ),
)
"""The seams that give host states ``provider_summaries`` and ``request_scores``."""
