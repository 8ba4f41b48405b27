"""Seams that record each decision of nova-scheduler.

The document is JSON; docs/admin/decision-record.rst describes the keys.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import oslo_messaging
from nova import objects, weights
from nova.context import RequestContext
from oslo_log import log as logging

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.nova import steps
from cpu_tiers.nova.notes import search_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import ReportClient
from cpu_tiers.nova.scheduler.reasons import decision_log
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)

_RECORD = TimeBudget("record of a decision", seconds=0.0)

MOST_HOSTS = 10
"""So many hosts of a list are named; the number of all hosts is told beside it."""


def named(hosts: Sequence[Any]) -> dict[str, Any]:
    """Return the number of host states, and the names of the first."""
    names = [str(getattr(host, "host", host)) for host in hosts[:MOST_HOSTS]]
    return {"number": len(hosts), "names": names}


@dataclass(slots=True, kw_only=True)
class Round:
    """The answers of filters, weighers and Placement about the hosts for a server.

    :param filters: for each filter, its name, the hosts it removed and how many it left.
    :param weights: for the best hosts, the weight and its parts by weigher.
    :param claims: for each claim, the providers and whether Placement granted the claim.
    """

    server: str | None
    filters: list[dict[str, Any]] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)

    def add_filter(self, name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Note the hosts removed by a filter."""
        removed: Sequence[Any] = ()
        if len(after) < len(before):
            left = {id(host) for host in after}
            removed = [host for host in before if id(host) not in left]
        self.filters.append({"filter": name, "left": len(after), "removed": named(removed)})

    def add_weights(
        self, weighed: Sequence[Any], parts: Mapping[str, Mapping[int, float]]
    ) -> None:
        """Note the weights of the best hosts.

        :param weighed: Nova's weighed objects, the best first.
        :param parts: by weigher, multiplier times normalized weight, by the ``id`` of the host.
        """
        self.weights = [
            {
                "host": each.obj.host,
                "weight": each.weight,
                "parts": {name: parts_by_id[id(each.obj)] for name, parts_by_id in parts.items()},
            }
            for each in weighed[:MOST_HOSTS]
        ]


@dataclass(slots=True, kw_only=True)
class Decision:
    """A request to select hosts, from its arrival to its answer.

    :param queries: the queries for allocation candidates that were made of the request.
    """

    request_id: str | None
    servers: tuple[str, ...]
    flavor: str
    queries: list[str] = field(default_factory=list)
    candidates: dict[str, Any] = field(default_factory=lambda: named(()))
    rounds: list[Round] = field(default_factory=list)
    _arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    _started: float = field(default_factory=time.monotonic)

    def document(self, selections: Sequence[Sequence[Any]], fault: str | None) -> dict[str, Any]:
        """Return the decision as JSON.

        :param selections: for each server Nova's selections: the selected host, then alternates.
        """
        return {
            "time": self._arrived.isoformat(timespec="milliseconds"),
            "seconds": round(time.monotonic() - self._started, 3),
            "request_id": self.request_id,
            "servers": self.servers,
            "flavor": self.flavor,
            "queries": self.queries,
            "candidates": self.candidates,
            "rounds": list(map(asdict, self.rounds)),
            "selected": [
                {"host": hosts[0].service_host, "alternates": [s.service_host for s in hosts[1:]]}
                for hosts in selections
            ],
            "fault": fault,
        }


def _record(
    original: Function, self: Any, context: RequestContext, *args: Any, **kwargs: Any
) -> Any:
    """Write the decision, also a decision without a host."""
    spec_obj = kwargs.get("spec_obj")
    if not isinstance(spec_obj, objects.RequestSpec):
        return original(self, context, *args, **kwargs)  # of an old nova-conductor
    decision = Decision(
        request_id=context.request_id,
        servers=tuple(kwargs.get("instance_uuids") or ()),
        flavor=spec_obj.flavor.name,
    )
    search_of(spec_obj).decision = decision
    selections: Any = ()
    fault: str | None = None
    try:
        selections = original(self, context, *args, **kwargs)
    except oslo_messaging.ExpectedException as error:  # Nova's NoValidHost
        fault = str(error.exc_info[1])
        raise
    except Exception as error:
        fault = repr(error)
        raise
    finally:
        search_of(spec_obj).decision = None
        _write(decision, selections, fault)
    return selections


def _write(decision: Decision, selections: Any, fault: str | None) -> None:
    # An old nova-conductor wants dictionaries in place of lists of selections.
    made = [hosts for hosts in selections if isinstance(hosts, list)]
    path = CONF[filter_scheduler.GROUP].decision_record_file
    try:
        dropped = decision_log.write(path, decision.document(made, fault))
    except Exception as error:  # a record costs no server its host
        dropped = repr(error)
    if dropped:
        _RECORD.drop(dropped)


def _round_of(spec_obj: objects.RequestSpec) -> Round | None:
    decision: Decision | None = search_of(spec_obj).decision
    return decision.rounds[-1] if decision and decision.rounds else None


def _note_query(original: Function, ctxt: Any, spec_obj: Any, *args: Any, **kwargs: Any) -> Any:
    request = original(ctxt, spec_obj, *args, **kwargs)
    if decision := search_of(spec_obj).decision:
        decision.queries.append(request.to_querystring())
    return request


def _note_filters(
    original: Function, self: Any, filters: Sequence[Any], objs: Any, spec_obj: Any, index: int = 0
) -> Any:
    decision: Decision | None = search_of(spec_obj).decision
    if decision is None:
        return original(self, filters, objs, spec_obj, index)
    hosts = list(objs)
    if not decision.rounds:
        decision.candidates = named(hosts)
    decision.rounds.append(current_round := Round(server=spec_obj.instance_uuid))
    return original(
        self, [_Filter(each, current_round) for each in filters], hosts, spec_obj, index
    )


class _Watched:
    """A filter or a weigher of Nova; Nova's log names its class, not this one."""

    def __init__(self, original: Any) -> None:
        self._original = original

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Filter(_Watched):
    def __init__(self, original: Any, current_round: Round) -> None:
        super().__init__(original)
        self._round = current_round

    def filter_all(self, filter_obj_list: Sequence[Any], spec_obj: objects.RequestSpec) -> Any:
        before = list(filter_obj_list)
        passing = self._original.filter_all(before, spec_obj)
        if passing is None:  # it says to stop filtering
            return None
        after = list(passing)
        self._round.add_filter(type(self._original).__name__, before, after)
        return after


def _note_weights(
    original: Function, self: Any, weighers: Sequence[Any], obj_list: Any, weighing_properties: Any
) -> Any:
    current_round = _round_of(weighing_properties)
    if current_round is None:
        return original(self, weighers, obj_list, weighing_properties)
    watched = [_Weigher(each) for each in weighers]
    weighed = original(self, watched, obj_list, weighing_properties)
    try:
        current_round.add_weights(weighed, _parts(watched, weighed[:MOST_HOSTS]))
    except Exception as error:  # a weigher of others need not work as Nova's do
        LOG.warning("The weights of hosts are not recorded: %r", error)
    return weighed


class _Weigher(_Watched):
    """A weigher of Nova that keeps the raw weights of hosts."""

    def __init__(self, original: Any) -> None:
        super().__init__(original)
        # Nova calls the method for each host: an attribute is found without __getattr__.
        self.weight_multiplier = original.weight_multiplier
        self.weighed: Sequence[Any] = ()
        self.raw: list[float] = []

    def weigh_objects(self, weighed_obj_list: Any, weight_properties: Any) -> Any:
        self.weighed = weighed_obj_list
        self.raw = list(self._original.weigh_objects(weighed_obj_list, weight_properties))
        return self.raw

    def parts(self, hosts: Mapping[int, Any]) -> dict[int, float]:
        """Return multiplier times normalized weight, by the ``id`` of the host state.

        :param hosts: the host states by their places in the list that was weighed.
        """
        low, high = self._original.minval, self._original.maxval
        low = min(self.raw) if low is None else low
        high = max(self.raw) if high is None else high
        raw = [self.raw[place] for place in hosts]
        normalized = weights.normalize(raw, minval=low, maxval=high)
        return {
            id(host): self.weight_multiplier(host) * weight
            for host, weight in zip(hosts.values(), normalized, strict=True)
        }


def _parts(weighers: Iterable[_Weigher], best: Sequence[Any]) -> dict[str, dict[int, float]]:
    """Return the parts of the weights of the best hosts, by the name of the weigher.

    :param best: weighed objects of Nova.
    """
    ran = [weigher for weigher in weighers if weigher.raw]
    if not ran:
        return {}
    places = {id(each.obj): place for place, each in enumerate(ran[0].weighed)}
    hosts = {places[id(each.obj)]: each.obj for each in best}
    return {weigher.__class__.__name__: weigher.parts(hosts) for weigher in ran}


def _note_claim(
    original: Function,
    ctx: Any,
    client: ReportClient,
    spec_obj: Any,
    instance_uuid: str,
    alloc_req: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    providers = tuple(alloc_req["allocations"])  # the caller may change the candidate
    granted = original(ctx, client, spec_obj, instance_uuid, alloc_req, *args, **kwargs)
    if current_round := _round_of(spec_obj):
        current_round.claims.append({"providers": providers, "granted": bool(granted)})
    return granted


SEAMS = (
    seam(
        "nova.scheduler.manager:SchedulerManager.select_destinations",
        "self, context, request_spec=None, filter_properties=None, spec_obj=<object object>,"
        " instance_uuids=None, return_objects=False, return_alternates=False",
        _record,
    ),
    steps.scheduler_request(_note_query),
    seam(
        "nova.filters:BaseFilterHandler.get_filtered_objects",
        "self, filters, objs, spec_obj, index=0",
        _note_filters,
    ),
    seam(
        "nova.weights:BaseWeightHandler.get_weighed_objects",
        "self, weighers, obj_list, weighing_properties",
        _note_weights,
    ),
    steps.claim(_note_claim),
)
