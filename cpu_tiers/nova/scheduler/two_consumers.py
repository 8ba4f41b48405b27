"""A single write of the allocations of a migration and of its server, tried until it is certain.

Another service may change the server's allocations between the read and the write, and an
answer of Placement may be lost after Placement has written. A write that seems to have failed is
therefore followed by a read of both consumers. If Placement does not answer the read, a second
write takes the first back. nova-conductor gives back only what the migration got from
nova-conductor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from keystoneauth1.exceptions import ClientException

from cpu_tiers.nova.no_answer import NO_ANSWER

_VERSION = "1.28"
"""The microversion with which Nova's ``get_allocs_for_consumer`` reads allocations. The body of
the answer is sent back, so both requests need the same microversion."""

_TRIES = 4
"""How often the write is tried, as Nova's ``retries`` does."""

_FIRST = 1
"""The generation of a consumer after its first allocations; each write of allocations adds one."""

_CHANGED = "placement.concurrent_update"
"""The code of a conflict: a generation in the request is no longer the present generation."""


def hand_over(
    client: Any,
    context: Any,
    migration: str,
    server: str,
    old: Mapping[str, Any],
    allocations: Mapping[str, Any],
) -> str:
    """Write the allocations ``old`` of a server to its migration, and ``allocations`` to itself.

    :param client: Nova's ``SchedulerReportClient``.
    :param old: the body of Placement's answer with the server's allocations.
    :returns: the reason if Placement has not written them; an empty text if Placement has.
    """
    fault = ""
    for _ in range(_TRIES):
        fault, is_final = write_both(client, context, migration, server, old, allocations)
        if not fault or is_final:
            return fault
        try:
            if _amounts(client.get_allocs_for_consumer(context, migration)) == _amounts(old):
                return ""  # only the answer was lost
            now = client.get_allocs_for_consumer(context, server)
            if _amounts(now) != _amounts(old):
                return f"{fault}; the allocations of the server have changed meanwhile"
        except NO_ANSWER as error:
            _take_back(client, context, migration, server, old)
            return f"{fault}; {error!r}"
        old = now
    return fault


def write_both(
    client: Any,
    context: Any,
    migration: str,
    server: str,
    old: Mapping[str, Any],
    allocations: Mapping[str, Any],
) -> tuple[str, bool]:
    """Send the write; return the fault, and whether another try would have the same fault.

    The parameters are those of :func:`hand_over`; ``old`` has the server's present generation.
    """
    body = {
        # A generation of None: the migration must have no allocations yet.
        migration: {**old, "consumer_generation": None},
        server: {**old, "allocations": allocations},
    }
    try:
        response = client.post(
            "/allocations", body, version=_VERSION, global_request_id=context.global_id
        )
    except ClientException as error:
        return repr(error), False
    status, text = response.status_code, response.text
    is_refusal = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    is_final = is_refusal and _CHANGED not in text
    return "" if status == HTTPStatus.NO_CONTENT else f"{status} {text}", is_final


def _take_back(
    client: Any, context: Any, migration: str, server: str, old: Mapping[str, Any]
) -> None:
    """Give the migration's allocations back to the server, if Placement has written them.

    Placement refuses the request if the generations are not those after :func:`write_both`. No
    answer is needed: the claim has failed in any case.
    """
    with contextlib.suppress(*NO_ANSWER):
        body = {
            migration: {**old, "allocations": {}, "consumer_generation": _FIRST},
            server: {**old, "consumer_generation": old["consumer_generation"] + 1},
        }
        client.post("/allocations", body, version=_VERSION, global_request_id=context.global_id)


def _amounts(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the amounts in a body of allocations by provider, without the generations."""
    return {uuid: item["resources"] for uuid, item in body["allocations"].items()}
