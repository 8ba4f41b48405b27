"""The host cell and the page size for each guest cell of an allocation candidate.

The name of a NUMA node's provider ends with the number of the host cell, and
Placement's answer to ``GET /allocation_candidates`` has no names of providers. A
single request reads the names of all NUMA nodes, and the process keeps them. A
candidate with an unknown NUMA node causes a new request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keystoneauth1.exceptions import ClientException

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.guest import CellPlace
from cpu_tiers.model.numa import cell_of, node_trait, page_size_of

Candidate = Mapping[str, Any]
"""An allocation request of Placement's answer, as Nova passes it on."""

Summaries = Mapping[str, Mapping[str, Any]]
"""The provider summaries of Placement's answer, by provider uuid."""

_CELLS: dict[str, int | None] = {}
"""Host cell by the provider uuid of the NUMA node; ``None`` if the name has no cell number."""

_SIZES_KB: dict[str, int | None] = {}
"""Page size in KiB by the provider uuid of the pages; ``None`` if no trait says the size."""


class NodesUnknown(CpuTiersError):
    """Placement refused to list the NUMA nodes or the traits."""


def has_nodes(candidate: object) -> bool:
    """Tell whether a candidate has NUMA nodes.

    A candidate has no mappings below microversion 1.34, and Nova's own tests have candidates of
    other types.
    """
    return isinstance(candidate, Mapping) and "_PROC1" in candidate.get("mappings", ())


def places_of(mappings: Mapping[str, Sequence[str]]) -> tuple[CellPlace, ...] | None:
    """Return the host cell and the page size of each guest cell of an allocation candidate.

    :param mappings: the mappings of a candidate that :func:`learn` was called with.
    :returns: ``None`` if the candidate has no NUMA nodes (the host does not report NUMA
        nodes, or the guest has none) or a NUMA node that cpu-tiers does not know.
    """
    places = []
    for number, node in enumerate(_nodes(mappings), start=1):
        cell = _CELLS.get(node)
        if cell is None:
            return None
        pages = _pages(mappings, number)
        places.append(CellPlace(cell, _SIZES_KB.get(pages[0]) if pages else None))
    return tuple(places) or None


def is_unread(candidate: Candidate) -> bool:
    """Tell whether Placement has not told the name of a NUMA node of a candidate."""
    return not _CELLS.keys() >= set(_nodes(candidate["mappings"]))


def learn(
    client: Any,
    context: Any,
    candidates: Iterable[Candidate],
    summaries: Summaries,
) -> None:
    """Store the host cells and page sizes of candidates for :func:`places_of`.

    :param client: Nova's ``SchedulerReportClient``.
    :raises NodesUnknown: Placement refuses to list the NUMA nodes.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    nodes: set[str] = set()
    pages: set[str] = set()
    for candidate in candidates:
        candidate_nodes = _nodes(candidate["mappings"])
        nodes.update(candidate_nodes)
        for number in range(1, len(candidate_nodes) + 1):
            pages.update(_pages(candidate["mappings"], number))
    _SIZES_KB.update({provider: page_size_of(summaries[provider]["traits"]) for provider in pages})
    if not nodes <= _CELLS.keys():
        _CELLS.update(_read_cells(client, context))


def most_nodes(client: Any, context: Any) -> int:
    """Return the number of NUMA nodes of the host that reports the most NUMA nodes.

    :param client: Nova's ``SchedulerReportClient``.
    :raises NodesUnknown, keystoneauth1.exceptions.ClientException: as :func:`learn`.
    """
    # Not from _CELLS: a host with more NUMA nodes may have started since the last request.
    roots = Counter(node["root_provider_uuid"] for node in _read_nodes(client, context))
    return max(roots.values(), default=0)


def _read_cells(client: Any, context: Any) -> dict[str, int | None]:
    return {node["uuid"]: cell_of(node["name"]) for node in _read_nodes(client, context)}


def _read_nodes(client: Any, context: Any) -> list[dict[str, Any]]:
    return read_providers(client, context, f"?required={node_trait()}")


def read(client: Any, context: Any, url: str, *, version: str) -> dict[str, Any]:
    """Return the body of Placement's answer to a GET of nova-scheduler.

    :param client: Nova's ``SchedulerReportClient``.
    :param version: the microversion of Placement.
    :raises NodesUnknown: Placement answers with another status than 200, or without JSON.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    response = client.get(url, version=version, global_request_id=context.global_id)
    if response.status_code != 200:
        raise NodesUnknown(f"{response.status_code} {response.text}")
    try:
        body: dict[str, Any] = response.json()
    except ValueError as error:  # a proxy may answer 200 with a page of its own, or half a body
        raise NodesUnknown(f"the answer to {url} is not JSON: {error}") from error
    return body


def read_providers(client: Any, context: Any, query: str = "") -> list[dict[str, Any]]:
    """Return the providers of a query, each with uuid, name and root provider.

    A request that fails is repeated once: without the names of NUMA nodes or devices,
    nova-scheduler may choose those that nova-compute refuses.

    :param query: such as ``?required=HW_NUMA_ROOT``; empty for all providers.
    :raises NodesUnknown, keystoneauth1.exceptions.ClientException: as :func:`read`.
    """
    url = f"/resource_providers{query}"
    try:
        body = read(client, context, url, version="1.18")  # "required" since version 1.18
    except (NodesUnknown, ClientException):
        body = read(client, context, url, version="1.18")
    providers: list[dict[str, Any]] = body["resource_providers"]
    return providers


def _pages(mappings: Mapping[str, Sequence[str]], number: int) -> Sequence[str]:
    """Return the provider of the pages of a guest cell; empty for a cell without memory."""
    return mappings.get(f"_MEM{number}", ())


def _nodes(mappings: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return AllocationRequest(allocations={}, mappings=mappings).nodes
