"""Seam that gives a claim back if Placement has allocated more than the capacity of a provider.

Decision D89; :mod:`cpu_tiers.oversold` says how a claim is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from nova import exception
from nova.context import RequestContext
from oslo_log import log as logging

from cpu_tiers import oversold
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.nova.excesses import FAILED, VERSION, excesses_of
from cpu_tiers.nova.protocols import ReportClient
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)

MOST_CLAIMS = 3
"""So many times a host is claimed before nova-scheduler claims the next host."""

_LOOK = TimeBudget("look for excess claims", seconds=5.0)
"""Bounds the requests that only read. A write is not left alone: its claim would be in doubt."""

_Allocations = Mapping[str, Mapping[str, int]]
"""The amounts of a consumer, by the uuid of the provider and by resource class."""


def _give_back_oversold(
    original: Function,
    self: Any,
    context: RequestContext,
    consumer_uuid: str,
    alloc_request: Mapping[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Claim a host, and give the claim back while the claim is part of an excess.

    The answer is Nova's if Placement does not answer a question of the wrapper.
    """
    # An evacuated server keeps the allocations of its source host, and gets more.
    before = _LOOK.do(lambda: _held(self, context, consumer_uuid))
    claimed = original(self, context, consumer_uuid, alloc_request, *args, **kwargs)
    if not claimed or before is None:
        return claimed
    claim = _Claim(self, context, consumer_uuid, before, _amounts(alloc_request))
    for _ in range(MOST_CLAIMS - 1):
        if not claim.is_oversold() or not claim.give_back():
            return claimed
        oversold.pause()
        try:
            claimed = original(self, context, consumer_uuid, alloc_request, *args, **kwargs)
        except exception.AllocationUpdateFailed as error:
            # Without cpu-tiers, this request would not have been sent.
            LOG.warning("Server has allocations already: %s", error, instance_uuid=consumer_uuid)
            return False
        if not claimed:
            return claimed
    return not (claim.is_oversold() and claim.give_back())


class _Claim:
    """A claim granted by Placement."""

    def __init__(
        self,
        client: ReportClient,
        context: RequestContext,
        server: str,
        before: _Allocations,
        wanted: _Allocations,
    ) -> None:
        self._client, self._context, self._server = client, context, server
        self._before = before
        self._consumer: Mapping[str, Any] = {}
        # Nova claims nothing new of a provider of which the consumer has allocations already.
        self._added = {uuid: wanted[uuid] for uuid in wanted if uuid not in before}

    def is_oversold(self) -> bool:
        """Tell whether a provider of the claim has an excess, also after a pause.

        ``False`` if Placement does not tell, or not in time.
        """
        return bool(_LOOK.do(self._look_twice))

    def _look_twice(self) -> bool:
        try:
            excesses = oversold.lasting_excesses(
                lambda: excesses_of(self._client, self._context, self._added)
            )
        except FAILED as error:
            text = "It is not known whether the claim exceeds the capacity: %r"
            LOG.warning(text, error, instance_uuid=self._server)
            return False
        if excesses:
            LOG.warning(
                "The claim is given back, because Placement has allocated %s",
                ", ".join(map(str, excesses)),
                instance_uuid=self._server,
            )
        return bool(excesses)

    def give_back(self) -> bool:
        """Write the allocations of before the claim; tell whether they are certainly written."""
        after = {**self._before, **self._added}
        fault = oversold.give_back(self._before, after, self._present, self._restore, FAILED)
        if fault:
            text = fault if isinstance(fault, str) else repr(fault)
            LOG.error(
                "The excess claim may not be given back: %s", text, instance_uuid=self._server
            )
        return not fault

    def _present(self) -> _Allocations:
        self._consumer = self._client.get_allocs_for_consumer(self._context, self._server)
        return _amounts(self._consumer)

    def _restore(self) -> str:
        """Send the write; return the fault, or an empty text."""
        kept = {uuid: self._consumer["allocations"][uuid] for uuid in self._before}
        body = {self._server: {**self._consumer, "allocations": kept}}
        response = self._client.post(
            "/allocations", body, version=VERSION, global_request_id=self._context.global_id
        )
        is_done = response.status_code == HTTPStatus.NO_CONTENT
        return "" if is_done else f"{response.status_code} {response.text}"


def _held(client: ReportClient, context: RequestContext, consumer: str) -> _Allocations | None:
    """Return the amounts of a consumer; ``None`` if Placement does not tell."""
    try:
        return _amounts(client.get_allocs_for_consumer(context, consumer))
    except FAILED as error:
        LOG.warning("The claim is not checked: %r", error, instance_uuid=consumer)
        return None


def _amounts(body: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    return {uuid: dict(item["resources"]) for uuid, item in body["allocations"].items()}


_CLIENT = "nova.scheduler.client.report:SchedulerReportClient"

SEAMS = (
    seam(
        f"{_CLIENT}.claim_resources",
        "self, context, consumer_uuid, alloc_request, project_id, user_id,"
        " allocation_request_version, consumer_generation=None",
        _give_back_oversold,
    ),
    seam(f"{_CLIENT}.get_allocs_for_consumer", "self, context, consumer"),
    seam(f"{_CLIENT}.post", "self, url, data, version=None, global_request_id=None"),
)
