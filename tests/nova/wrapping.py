"""All seams of ours, found in the modules that have them."""

import importlib
import pkgutil
from collections.abc import Iterator

import cpu_tiers.nova
from cpu_tiers.nova import seams


def modules() -> list[str]:
    """Return the names of all modules of ours that Nova loads."""
    return [one.name for one in pkgutil.walk_packages(cpu_tiers.nova.__path__, "cpu_tiers.nova.")]


def all_seams() -> frozenset[seams.Seam]:
    """Return every seam, whichever service installs or verifies it."""
    return frozenset(_find())


def _find() -> Iterator[seams.Seam]:
    for name in modules():
        for value in vars(importlib.import_module(name)).values():
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, seams.Seam):
                    yield one


def wrapped() -> list[str]:
    """Return the names of the functions that are wrapped now."""
    return sorted({str(seam) for seam in all_seams() if seams.is_installed(seam)})
