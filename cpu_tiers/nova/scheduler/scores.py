"""Seams: Placement's answer, on the host states of the request it is for.

Nova builds its host states anew for every request, so what hangs on them
lives as long as the request, and no other thread sees it.
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


class Answer:
    """What Placement said to one scheduler request; all its host states share it.

    The summaries are a snapshot of before the request. They are not read
    until somebody asks for the forest.
    """

    def __init__(
        self, summaries: Mapping[str, Mapping[str, Any]], request_spec: objects.RequestSpec
    ) -> None:
        self._summaries = summaries
        self._request_spec = request_spec

    @functools.cached_property
    def forest(self) -> Forest:
        """The hosts with their scores, for what Nova asked of Placement."""
        options = CONF[filter_scheduler.GROUP]
        asked = utils.ResourceRequest.from_request_spec(self._request_spec)
        return Forest(
            self._summaries,
            asked.merged_resources(),
            asked.all_required_traits
            | self._request_spec.root_required
            | numa_query.traits_asked(self._request_spec),
            scoring=SCORINGS[options.resource_provider_scoring],
            only_resources=options.resource_provider_resources,
            only_traits=options.resource_provider_traits,
        )

    def claim(self, root: str, allocations: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what one server got, so that the next of the request sees it.

        Without a forest there is nothing to take it from, and will not be:
        later servers choose from the same hosts or fewer.
        """
        if "forest" not in self.__dict__:
            return
        taken: dict[str, int] = {}
        for provider, allocation in allocations.items():
            if self._summaries[provider]["root_provider_uuid"] == root:
                for name, amount in allocation["resources"].items():
                    taken[name] = taken.get(name, 0) + amount
        self.forest.claim(root, taken)


def _hand_over(original: Callable[..., Any]) -> Callable[..., Any]:
    """Give each host state the answer; there is none for a rebuild."""

    @functools.wraps(original)
    def _get_all_host_states(
        self: Any, context: Any, spec_obj: objects.RequestSpec, provider_summaries: Any
    ) -> Iterator[Any]:
        answer = None if provider_summaries is None else Answer(provider_summaries, spec_obj)
        for host_state in original(self, context, spec_obj, provider_summaries):
            host_state.provider_summaries = provider_summaries
            host_state.placement_answer = answer
            yield host_state

    return _get_all_host_states


def _claim(original: Callable[..., Any]) -> Callable[..., Any]:
    """Consume also in the answer what Nova consumes in the host state.

    The first candidate of the host is the one that Nova has just allocated.
    """

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        if self.placement_answer is not None and self.allocation_candidates:
            allocations = self.allocation_candidates[0]["allocations"]
            self.placement_answer.claim(self.uuid, allocations)
        return result

    return consume_from_request


SEAMS = (
    Seam(
        module="nova.scheduler.manager",
        path="SchedulerManager._get_all_host_states",
        parameters=("self", "context", "spec_obj", "provider_summaries"),
        wrap=_hand_over,
    ),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters=("self", "spec_obj"),
        wrap=_claim,
    ),
)
"""Host states carry ``provider_summaries``, and their scores."""
