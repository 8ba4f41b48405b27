"""The names of the NUMA nodes of a host as providers in Placement, and their traits.

Spec: numa-topology-with-rps, "NUMA RP" and "Memory pagesize RP". The spec does not
name the providers of memory pages; they are called ``<host>_NUMA<id>_PAGES_<kB>``.
The NUMA nodes that a flavor requests are in :mod:`cpu_tiers.extra_specs.numa`.
"""

import re
from collections.abc import Iterable

from cpu_tiers.model import names
from cpu_tiers.model.flavor import PageSize

SIZE_TRAIT = "CUSTOM_MEMORY_PAGE_SIZE_"
"""The beginning of the trait of a page size; the size in kB follows."""

CELL_TRAIT = "CUSTOM_NUMA_CELL_"
"""The beginning of the trait of a NUMA node; the number of the host cell follows."""

COUNT_TRAIT = "CUSTOM_NUMA_NODES_"
"""The beginning of the traits of a root provider with NUMA nodes; a number of nodes follows."""

NODE_TRAIT = "HW_NUMA_ROOT"
"""The trait of every NUMA node."""

NO_NUMA_TRAIT = "CUSTOM_HW_NON_NUMA"
"""The trait of a host that does not accept servers with a NUMA topology."""

SMALL_PAGES_TRAIT = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"
"""The trait of memory in pages of the host's smallest size."""

LARGE_PAGES_TRAIT = "CUSTOM_MEMORY_PAGE_SIZE_LARGE"
"""The trait of memory in pages of a larger size."""

_MOST_NODES = 128
"""More NUMA nodes than a host has."""

OF_NODES = frozenset({names.VCPU, names.PCPU, names.VCPU_SHARES, names.MEMORY_MB})
"""The resource classes that move from a root provider to its NUMA nodes."""

OF_TREE = (CELL_TRAIT, COUNT_TRAIT)
"""The beginnings of the traits that only describe the provider tree of a host."""


def node_name(host: str, cell: int) -> str:
    """Return the name of the provider of a host's NUMA cell."""
    return f"{host}_NUMA{cell}"


def pages_name(host: str, cell: int, size_kb: int) -> str:
    """Return the name of the provider of a cell's memory in pages of a size."""
    return f"{node_name(host, cell)}_PAGES_{size_kb}"


def is_part(host: str, name: str) -> bool:
    """Return whether ``name`` is the name of a NUMA node of ``host``, or of a node's pages."""
    return read_name(host, name) is not None


def read_name(host: str, name: str) -> tuple[int, int | None] | None:
    """Return the NUMA cell and the page size in kB of a provider.

    The page size of a NUMA node is ``None``. The result is ``None`` for the name of a
    provider that is neither a NUMA node of ``host`` nor the pages of a node.
    """
    # Escaped, because the dots of a host's name would match any character.
    match = re.fullmatch(rf"{re.escape(host)}_NUMA([0-9]+)(?:_PAGES_([0-9]+))?", name)
    return match and (int(match[1]), int(match[2]) if match[2] else None)


def cell_of(traits: Iterable[str]) -> int | None:
    """Return the host cell of a NUMA node with these traits; ``None`` without such a trait."""
    return _number(CELL_TRAIT, traits)


def count_traits(nodes: int) -> frozenset[str]:
    """Return the traits of the root provider of a host with a number of NUMA nodes.

    A host with 3 nodes has the traits for 1, 2 and 3: a server with 2 nodes requires that for 2,
    and a server without NUMA nodes avoids hosts with that for 1.
    """
    return frozenset(map(count_trait, range(1, nodes + 1)))


def count_trait(nodes: int) -> str:
    """Return the trait of the root provider of a host with at least this number of NUMA nodes."""
    # An image may name any number of nodes, and every name is created in Placement.
    return f"{COUNT_TRAIT}{min(nodes, _MOST_NODES)}"


def page_trait(requested: PageSize | None) -> str | None:
    """Return the trait of the memory for a guest; ``None`` if memory of any pages will do.

    :param requested: the page size that the guest requests. ``None`` means small
        pages, as in the spec.
    """
    if requested == "any":
        return None
    if isinstance(requested, int):
        return f"{SIZE_TRAIT}{requested}"
    return LARGE_PAGES_TRAIT if requested == "large" else SMALL_PAGES_TRAIT


def page_size_of(traits: Iterable[str]) -> int | None:
    """Return the page size in kB of a provider with these traits; ``None`` without a size."""
    return _number(SIZE_TRAIT, traits)


def _number(prefix: str, traits: Iterable[str]) -> int | None:
    matches = (re.fullmatch(rf"{prefix}([0-9]+)", name) for name in traits)
    return next((int(match[1]) for match in matches if match), None)


def page_traits(size_kb: int, *, smallest: bool) -> frozenset[str]:
    """Return the traits of memory in pages of ``size_kb``.

    :param smallest: whether this is the smallest page size of the host.
    """
    kind = SMALL_PAGES_TRAIT if smallest else LARGE_PAGES_TRAIT
    return names.names_of_trait(kind) | {f"{SIZE_TRAIT}{size_kb}"}
