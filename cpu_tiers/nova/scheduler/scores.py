"""Seams that attach the scores of a scheduler request to the host states of the request.

Nova's ``HostManager._get_host_states`` builds new host states for every request, so
an attribute of a host state lives as long as the request and is not shared with
requests in other threads.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nova import objects
from nova.scheduler import utils

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.names import as_known, with_shares_named
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam
from cpu_tiers.weights import SCORINGS, Forest, make_forest

LOG = logging.getLogger(__name__)

_FAILURES = itertools.count(1)
"""Numbers the requests whose hosts were weighed without scores."""


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
        self._has_failed = False

    def of(self, roots: Sequence[str]) -> list[float]:
        """Return the score of each host; 0 for every host if a score cannot be worked out.

        :param roots: the uuids of the root providers of the hosts.
        """
        if self._has_failed:
            return [0.0] * len(roots)
        try:
            return self.forest.scores_of(roots)
        except Exception as error:
            self._fail(error)
            return [0.0] * len(roots)

    def of_hosts(self, hosts: Sequence[Any]) -> list[float]:
        """Return the score of each host, and put the best candidate of each host first.

        The scores are 0 for every host if a score cannot be worked out, and the candidates stay in
        their order. Only some scorings tell the candidates of a host apart. Candidates on more
        NUMA nodes with PCI devices than the first, or on fewer, are left where they are.

        :param hosts: Nova's host states.
        """
        if not self._has_failed and self._counts_typical:
            try:
                self._sort_candidates(hosts)
            except Exception as error:
                self._fail(error)
        return self.of([host.uuid for host in hosts])

    @functools.cached_property
    def _counts_typical(self) -> bool:
        return SCORINGS[CONF[filter_scheduler.GROUP].resource_provider_scoring].counts_typical

    def _sort_candidates(self, hosts: Sequence[Any]) -> None:
        from cpu_tiers.nova.scheduler.typical_servers import equals_of_first

        best = []
        for host in hosts:
            if host.allocation_candidates:
                equals = equals_of_first(host, self._request_spec)
                self.forest.offer(host.uuid, list(map(_amounts_of, equals)))
                best.append((host.allocation_candidates, self.forest.best(host.uuid)))
        # Nothing is changed before all hosts are worked out: a failure leaves Nova's order.
        for candidates, number in best:
            candidates.insert(0, candidates.pop(number))

    def _fail(self, error: Exception) -> None:
        """Do without scores from now on.

        Only NoValidHost and its like end well if nova-scheduler raises them: nova-conductor's
        rebuild_instance leaves an evacuated server in its task state after other exceptions.
        A weigher only expresses a preference, so it must not raise at all.
        """
        self._has_failed = True
        LOG.warning(
            "Hosts are weighed without their scores in this request (request %d since the start"
            " of nova-scheduler to which this happens): %r",
            next(_FAILURES),
            error,
        )

    @functools.cached_property
    def forest(self) -> Forest:
        """The hosts with their scores, built when a weigher needs the first score."""
        options = CONF[filter_scheduler.GROUP]
        request = utils.ResourceRequest.from_request_spec(self._request_spec)
        nodes, avoided = frozenset[str](), frozenset[str]()
        if options.query_placement_for_numa:  # only then the NUMA query is imported
            from cpu_tiers.nova.scheduler.numa.numa_query import traits_of_query

            nodes, avoided = traits_of_query(self._request_spec)
        of_typical: dict[str, Any] = {}
        if self._counts_typical:
            from cpu_tiers.nova.scheduler.typical_servers import HISTORY, groups_of

            of_typical = {"groups": groups_of(request, avoided), "history": HISTORY}
        return make_forest(
            self._summaries,
            with_shares_named(request.merged_resources()),
            request.all_required_traits | self._request_spec.root_required | nodes,
            scoring=SCORINGS[options.resource_provider_scoring],
            only_resources=list(map(as_known, options.resource_provider_resources)),
            only_traits=options.resource_provider_traits,
            **of_typical,
        )

    def claim(self, root: str, allocations: Mapping[str, Mapping[str, Any]]) -> None:
        """Subtract the allocations of a server, for the scores of the request's next server.

        :param root: the uuid of the root provider of the server's host.
        :param allocations: the allocations of the server, by provider uuid.
        """
        # If the first server of a request built no forest, then no weigher needed a score. The
        # later servers choose from the same hosts or fewer, so they need no score either.
        if self._has_failed or "forest" not in self.__dict__:
            return
        try:
            by_provider = _amounts_of({"allocations": allocations})
            self.forest.claim(root, self._amounts(root, allocations), by_provider)
        except Exception as error:
            self._fail(error)

    def _amounts(
        self, root: str, allocations: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, int]:
        """Return the amounts that a server has allocated of the providers of a host's tree."""
        amounts: dict[str, int] = {}
        for provider, allocation in allocations.items():
            # A sharing provider, such as a disk pool, is not a part of the host's tree.
            if self._summaries[provider]["root_provider_uuid"] == root:
                for name, amount in with_shares_named(allocation["resources"]).items():
                    amounts[name] = amounts.get(name, 0) + amount
        return amounts


def _amounts_of(candidate: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """Return the amounts of a candidate by provider uuid and resource class."""
    return {
        uuid: with_shares_named(of["resources"]) for uuid, of in candidate["allocations"].items()
    }


def scores_of(host_state: Any) -> RequestScores | None:
    """Return the scores that a host state carries; ``None`` if Placement was not asked.

    Subclasses of Nova's ``SchedulerManager`` and ``HostManager``, and Nova's own tests, make
    host states without the seams of this module, and so without the attribute.
    """
    scores: RequestScores | None = getattr(host_state, "request_scores", None)
    return scores


def _attach_scores(original: Callable[..., Any]) -> Callable[..., Any]:
    """Attach the scores to each host state; ``None`` for a rebuild, which asks no Placement."""

    @functools.wraps(original)
    def _get_all_host_states(
        self: Any, context: Any, spec_obj: objects.RequestSpec, provider_summaries: Any
    ) -> Iterator[Any]:
        scores = None
        if provider_summaries is not None:
            scores = RequestScores(provider_summaries, spec_obj)

        def with_scores(host_state: Any) -> Any:
            host_state.provider_summaries = provider_summaries
            host_state.request_scores = scores
            return host_state

        # Nova's function reads the database at once and returns a generator expression. A
        # generator function here would read the database only when the first host is needed.
        host_states = original(self, context, spec_obj, provider_summaries)
        return (with_scores(host_state) for host_state in host_states)

    return _get_all_host_states


def _claim(original: Callable[..., object]) -> Callable[..., Any]:
    """Subtract the server's allocations from the scores when Nova consumes the host state."""

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        scores = scores_of(self)
        if scores is not None and self.allocation_candidates:
            # Nova's SchedulerManager._schedule claims the first candidate of the host.
            allocations = self.allocation_candidates[0]["allocations"]
            scores.claim(self.uuid, allocations)
        return result

    return consume_from_request


ATTACHES = Seam(
    module="nova.scheduler.manager",
    path="SchedulerManager._get_all_host_states",
    parameters="self, context, spec_obj, provider_summaries",
    wrap=_attach_scores,
)
"""The seam that gives host states ``provider_summaries`` and ``request_scores``."""

SEAMS = (
    ATTACHES,
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters="self, spec_obj",
        wrap=_claim,
    ),
)
"""The seams of the weigher."""
