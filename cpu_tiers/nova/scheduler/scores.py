"""Seams that attach the scores of a scheduler request to the host states of the request.

Nova's ``HostManager._get_host_states`` builds new host states for every request, so an attribute
of a host state lives as long as the request and is not shared with requests in other threads.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nova import objects
from nova.context import RequestContext
from nova.scheduler import utils
from nova.scheduler.filters.utils import aggregate_values_from_key
from oslo_log import log as logging

from cpu_tiers.conf import filter_scheduler, weigher, weigher_types
from cpu_tiers.nova import steps
from cpu_tiers.nova.convert import amounts_of, extra_specs, field
from cpu_tiers.nova.notes import host_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import HostManager, HostState
from cpu_tiers.nova.seams import Function, seam
from cpu_tiers.weights import (
    REQUESTED_TO_CAPACITY,
    SCORINGS,
    Forest,
    RequestedToCapacity,
    make_forest,
)

if TYPE_CHECKING:
    from cpu_tiers.nova.scheduler.nearness import Nearness

LOG = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_FAILURES = itertools.count(1)
"""Numbers the requests whose hosts were weighed without scores."""


class RequestScores:
    """The scores of all hosts in a scheduler request, shared by its host states.

    :param summaries: the provider summaries of Placement's answer. They are a
        snapshot from before the first server of the request was claimed.
    :param host_manager: Nova's, which knows the aggregates of all hosts.
    :param context: of the request.
    """

    def __init__(
        self,
        summaries: Mapping[str, Mapping[str, Any]],
        request_spec: objects.RequestSpec,
        host_manager: HostManager | None = None,
        context: RequestContext | None = None,
    ) -> None:
        self._summaries = summaries
        self._context = context
        self._host_manager = host_manager
        self._request_spec = request_spec
        self._has_failed = False
        self._shapes: dict[str, RequestedToCapacity | None] = {}
        self._soft_traits: Mapping[str, Mapping[str, float]] | None = None

    def of(self, roots: Sequence[str]) -> list[float]:
        """Return the score of each host; 0 for every host if a score cannot be worked out.

        :param roots: the uuids of the root providers of the hosts.
        """
        scores = self._worked_out(lambda: self.forest.scores_of(roots))
        return [0.0] * len(roots) if scores is None else scores

    def of_hosts(self, hosts: Sequence[HostState]) -> list[float]:
        """Return the score of each host, and put the best candidate of each host first.

        The scores are 0 for every host if a score cannot be worked out, and the candidates stay in
        their order. Only some scorings tell the candidates of a host apart. Candidates on more
        NUMA nodes with PCI devices than the first, or on fewer, are left where they are.

        :param hosts: Nova's host states.
        """
        if self._counts_typical:
            from cpu_tiers.nova.scheduler.typical_servers import sort_candidates

            self._worked_out(lambda: sort_candidates(self.forest, hosts, self._request_spec))
        scores = self.of([host.uuid for host in hosts])
        if CONF[filter_scheduler.GROUP].resource_provider_scoring == REQUESTED_TO_CAPACITY:
            shaped = self._worked_out(lambda: list(map(self._by_shape, hosts, scores)))
            scores = shaped or [0.0] * len(hosts)
        return scores

    def _by_shape(self, host: HostState, score: float) -> float:
        """Return the lowest score by the shapes of the aggregates; ``score`` without a shape."""
        forest: Any = self.forest  # a HostForest
        texts = aggregate_values_from_key(host, "resource_provider_shape")
        scorings = [self._scoring_of_shape(text, host) for text in texts]
        scores = [forest.score_by(each, host.uuid) for each in scorings if each is not None]
        return min(scores, default=score)

    def _scoring_of_shape(self, text: str, host: HostState) -> RequestedToCapacity | None:
        """Return the scoring by a shape; ``None`` for a malformed shape.

        Many hosts have the shape of one aggregate: a request parses each shape once, and logs one
        warning for each malformed shape.
        """
        if text not in self._shapes:
            try:
                self._shapes[text] = RequestedToCapacity(weigher_types.ShapeType()(text))
            except ValueError as error:
                self._shapes[text] = None
                LOG.warning("An aggregate of %s has a malformed shape: %s", host.host, error)
        return self._shapes[text]

    def of_soft_traits(self, hosts: Sequence[HostState]) -> list[float]:
        """Return the sum of the weights of the soft traits of each host; 0 after a failure.

        :param hosts: Nova's host states.
        """
        weights = self._worked_out(lambda: self._soft_traits_of(hosts)) or {}
        return [sum(weights.get(host.uuid, {}).values()) for host in hosts]

    def _soft_traits_of(self, hosts: Sequence[HostState]) -> Mapping[str, Mapping[str, float]]:
        """Return the weights of the soft traits of the hosts that have any, by host and trait.

        The later servers of a request choose from the same hosts or fewer, so the weights of the
        first server hold for all.
        """
        if self._soft_traits is None:
            specs = extra_specs(self._request_spec.flavor)
            traits = weigher.request_traits(CONF[filter_scheduler.GROUP], specs)
            used = (
                (host.uuid, candidate["allocations"])
                for host in hosts
                for candidate in host.allocation_candidates
            )
            self._soft_traits = traits.of_hosts(self._summaries, used)
        return self._soft_traits

    def nearness(self, option: str, hosts: Sequence[HostState]) -> list[float]:
        """Return how near the hosts are, from 0 to 1; 0 after a failure.

        :param option: the name of the multiplier.
        :param hosts: Nova's host states.
        """
        return self._worked_out(lambda: self._nearness.to(option, hosts)) or [0.0] * len(hosts)

    @functools.cached_property
    def _nearness(self) -> Nearness:
        from cpu_tiers.nova.scheduler.nearness import Nearness  # only if a multiplier is set

        return Nearness(self._request_spec, self._context, self._host_manager)

    @functools.cached_property
    def _counts_typical(self) -> bool:
        name = CONF[filter_scheduler.GROUP].resource_provider_scoring
        return name in SCORINGS and SCORINGS[name].counts_typical

    def _worked_out(self, work: Callable[[], _Result]) -> _Result | None:
        """Return the result of ``work``; ``None`` after a failure in the request.

        A weigher only expresses a preference, so it must not raise at all.
        """
        if self._has_failed:
            return None
        try:
            return work()
        except Exception as error:
            self._has_failed = True
            LOG.warning(
                "Hosts are weighed without their scores in this request (request %d since the"
                " start of nova-scheduler to which this happens): %r",
                next(_FAILURES),
                error,
                instance_uuid=field(self._request_spec, "instance_uuid"),
            )
            return None

    @functools.cached_property
    def forest(self) -> Forest:
        """The hosts with their scores, built when a weigher needs the first score."""
        options = CONF[filter_scheduler.GROUP]
        request = utils.ResourceRequest.from_request_spec(self._request_spec)
        nodes, avoided = frozenset[str](), frozenset[str]()
        if options.query_placement_for_numa:  # only then the NUMA query is imported
            from cpu_tiers.nova.scheduler.numa.numa_query import traits_of_query

            nodes, avoided = traits_of_query(self._request_spec)
        typical: dict[str, Any] = {}
        if self._counts_typical:
            from cpu_tiers.nova.scheduler.typical_servers import HISTORY, groups_of

            typical = {"groups": groups_of(request, avoided), "history": HISTORY}
        return make_forest(
            self._summaries,
            request.merged_resources(),
            request.all_required_traits | self._request_spec.root_required | nodes,
            scoring=weigher.configured_scoring(options),
            only_resources=weigher.class_weights(options),
            only_traits=options.resource_provider_traits,
            **typical,
        )

    def claim(self, root: str, allocations: Mapping[str, Mapping[str, Any]]) -> None:
        """Subtract the allocations of a server, for the scores of the request's next server.

        :param root: the uuid of the root provider of the server's host.
        :param allocations: the allocations of the server, by provider uuid.
        """
        # If the first server of a request built no forest, then no weigher needed a score. The
        # later servers choose from the same hosts or fewer, so they need no score either.
        if "forest" in self.__dict__:
            self._worked_out(lambda: self._claim(root, amounts_of({"allocations": allocations})))

    def _claim(self, root: str, allocations: Mapping[str, Mapping[str, int]]) -> None:
        amounts: Counter[str] = Counter()
        for provider, allocation in allocations.items():
            # A sharing provider, such as a disk pool, is not a part of the host's tree.
            if self._summaries[provider]["root_provider_uuid"] == root:
                amounts.update(allocation)
        self.forest.claim(root, amounts, allocations)


def _attach_scores(
    original: Function,
    self: Any,
    context: RequestContext,
    spec_obj: objects.RequestSpec,
    provider_summaries: Any,
) -> Iterator[Any]:
    """Attach the scores to each host state; ``None`` for a rebuild, which asks no Placement."""
    scores = None
    if provider_summaries is not None:
        manager = getattr(self, "host_manager", None)
        scores = RequestScores(provider_summaries, spec_obj, manager, context)

    def with_scores(host_state: Any) -> Any:
        host_state.provider_summaries = provider_summaries
        host_of(host_state).scores = scores
        return host_state

    # Nova's function reads the database at once and returns a generator expression. A
    # generator function here would read the database only when the first host is needed.
    host_states = original(self, context, spec_obj, provider_summaries)
    return (with_scores(host_state) for host_state in host_states)


def _claim(original: Function, self: HostState, spec_obj: objects.RequestSpec) -> Any:
    """Subtract the server's allocations from the scores when Nova consumes the host state."""
    result = original(self, spec_obj)
    scores = host_of(self).scores
    if scores is not None and self.allocation_candidates:
        # Nova's SchedulerManager._schedule claims the first candidate of the host.
        allocations = self.allocation_candidates[0]["allocations"]
        scores.claim(self.uuid, allocations)
    return result


SEAMS = (
    seam(
        "nova.scheduler.manager:SchedulerManager._get_all_host_states",
        "self, context, spec_obj, provider_summaries",
        _attach_scores,
    ),
    steps.consume(_claim),
)
