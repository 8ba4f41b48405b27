"""Where each guest node of an allocation candidate is: a cell of the host, and pages.

Placement's answer has no names of providers, so those of nodes are asked for,
all in one request; this process keeps them. A node that is not known yet has
them asked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.guest import CellPlace
from cpu_tiers.model.numa import cell_of, node_trait, page_size_of

Candidate = Mapping[str, Any]
"""An allocation request of Placement's answer, as Nova has it."""

Summaries = Mapping[str, Mapping[str, Any]]
"""Provider summaries, by uuid."""

_CELLS: dict[str, int | None] = {}
"""Host cell by the uuid of its node; ``None`` for a node whose name is not one of ours."""

_SIZES_KB: dict[str, int | None] = {}
"""Page size by the uuid of the pages' provider."""


class NodesUnknown(CpuTiersError):
    """Placement did not say which cells the nodes of its answer are."""


def places_of(mappings: Mapping[str, Sequence[str]]) -> tuple[CellPlace, ...] | None:
    """Return where each guest cell of an allocation candidate is.

    ``None`` where it names no nodes: the host does not report them, the guest
    has none, or a provider is not one of ours.

    :param mappings: of a candidate that :func:`learn` has seen.
    """
    places = []
    for number, node in enumerate(_nodes(mappings), start=1):
        cell = _CELLS.get(node)
        if cell is None:
            return None
        (pages,) = mappings[f"_MEM{number}"]
        places.append(CellPlace(cell, _SIZES_KB.get(pages)))
    return tuple(places) or None


def learn(
    client: Any,
    context: Any,
    candidates: Iterable[Candidate],
    summaries: Summaries,
) -> None:
    """Find out what :func:`places_of` needs for the candidates of an answer.

    :param client: Nova's ``SchedulerReportClient``.
    :raises NodesUnknown: Placement refuses to name its nodes.
    :raises keystoneauth1.exceptions.ClientException: it does not answer.
    """
    nodes: set[str] = set()
    pages: set[str] = set()
    for candidate in candidates:
        found = _nodes(candidate["mappings"])
        nodes.update(found)
        for number in range(1, len(found) + 1):
            pages.update(candidate["mappings"][f"_MEM{number}"])
    _SIZES_KB.update({one: page_size_of(summaries[one]["traits"]) for one in pages})
    if not nodes <= _CELLS.keys():
        _CELLS.update(_ask_cells(client, context))


def most_nodes(client: Any, context: Any) -> int:
    """Return the most nodes that a host reports.

    :param client: Nova's ``SchedulerReportClient``.
    :raises NodesUnknown, keystoneauth1.exceptions.ClientException: as :func:`learn`.
    """
    roots = Counter(one["root_provider_uuid"] for one in _ask_nodes(client, context))
    return max(roots.values(), default=0)


def _ask_cells(client: Any, context: Any) -> dict[str, int | None]:
    return {one["uuid"]: cell_of(one["name"]) for one in _ask_nodes(client, context)}


def _ask_nodes(client: Any, context: Any) -> list[dict[str, Any]]:
    url = f"/resource_providers?required={node_trait()}"
    found: list[dict[str, Any]] = ask(client, context, url, version="1.18")["resource_providers"]
    return found


def ask(client: Any, context: Any, url: str, *, version: str) -> dict[str, Any]:
    """Return what Placement answers to nova-scheduler.

    :param client: Nova's ``SchedulerReportClient``.
    :raises NodesUnknown: Placement refuses.
    :raises keystoneauth1.exceptions.ClientException: it does not answer.
    """
    response = client.get(url, version=version, global_request_id=context.global_id)
    if response.status_code != 200:
        raise NodesUnknown(f"{response.status_code} {response.text}")
    body: dict[str, Any] = response.json()
    return body


def _nodes(mappings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return AllocationRequest(allocations={}, mappings=mappings).nodes
