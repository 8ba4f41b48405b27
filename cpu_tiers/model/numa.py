"""Names of a NUMA-aware host: its providers, and their traits.

Spec: numa-topology-with-rps, "NUMA RP" and "Memory pagesize RP". A name that
the spec leaves open is ``<node>_NUMA<id>_PAGES_<kB>``.
"""

import re
from collections.abc import Iterable

from cpu_tiers.model import names
from cpu_tiers.model.policies import PageSize

SIZE_TRAIT = "CUSTOM_MEMORY_PAGE_SIZE_"
"""Begins the trait of a page size, which ends in the kB."""


def node_name(host: str, cell: int) -> str:
    """Return the name of the provider of a NUMA cell."""
    return f"{host}_NUMA{cell}"


def pages_name(host: str, cell: int, size_kb: int) -> str:
    """Return the name of the provider of a cell's memory in pages of one size."""
    return f"{node_name(host, cell)}_PAGES_{size_kb}"


def is_part(host: str, name: str) -> bool:
    """Tell whether ``name`` is that of a NUMA node of ``host``, or of its pages."""
    return read_name(host, name) is not None


def read_name(host: str, name: str) -> tuple[int, int | None] | None:
    """Return the NUMA cell of a provider, and the page size in kB if it is that of pages.

    ``None`` for a provider that is neither.
    """
    found = re.fullmatch(rf"{re.escape(host)}_NUMA([0-9]+)(?:_PAGES_([0-9]+))?", name)
    return found and (int(found[1]), int(found[2]) if found[2] else None)


def cell_of(name: str) -> int | None:
    """Return the NUMA cell of a node of any host; ``None`` for the name of another provider."""
    found = re.fullmatch(r".+_NUMA([0-9]+)", name)
    return found and int(found[1])


def node_trait() -> str:
    """Return the trait of each NUMA node."""
    return names.trait("HW_NUMA_ROOT")


def no_numa_trait() -> str:
    """Return the trait of a host that is to have no NUMA-aware servers."""
    return names.trait("HW_NON_NUMA")


def small_pages_trait() -> str:
    """Return the trait of memory in the smallest pages that the host has."""
    return names.trait("MEMORY_PAGE_SIZE_SMALL")


def large_pages_trait() -> str:
    """Return the trait of memory in larger pages."""
    return names.trait("MEMORY_PAGE_SIZE_LARGE")


def page_trait(asked: PageSize | None) -> str | None:
    """Return the trait of memory that a guest asks for; ``None`` if any will do.

    :param asked: ``None`` where the guest leaves it: small pages, as the spec
        has it.
    """
    if asked == "any":
        return None
    if isinstance(asked, int):
        return f"{SIZE_TRAIT}{asked}"
    return large_pages_trait() if asked == "large" else small_pages_trait()


def page_size_of(traits: Iterable[str]) -> int | None:
    """Return the page size in kB that the traits of a provider name; ``None`` if none does."""
    found = (re.fullmatch(rf"{SIZE_TRAIT}([0-9]+)", name) for name in traits)
    return next((int(one[1]) for one in found if one), None)


def page_traits(size_kb: int, *, smallest: bool) -> frozenset[str]:
    """Return the traits of memory in pages of ``size_kb``.

    :param smallest: these are the smallest pages that the host has.
    """
    kind = small_pages_trait() if smallest else large_pages_trait()
    return frozenset({kind, f"{SIZE_TRAIT}{size_kb}"})
