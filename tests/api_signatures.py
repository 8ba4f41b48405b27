"""The names of :mod:`cpu_tiers.api` with their signatures, as ``docs/reference/api.txt`` has them.

``python -m tests.api_signatures`` writes the file anew. It needs Nova, of which some names are.
"""

import inspect
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import cpu_tiers.api

FILE = Path(__file__).parents[1] / "docs" / "reference" / "api.txt"


def entries(names: Iterable[str] = cpu_tiers.api.__all__) -> Iterator[str]:
    """Yield the entry of each name: its signature, and lines with the members of a class."""
    for name in names:
        value = getattr(cpu_tiers.api, name)
        members = sorted(set(_members(value))) if inspect.isclass(value) else []
        lines = [f"    {each}{_signature(getattr(value, each))}" for each in members]
        yield "\n".join([f"{name}{_signature(value)}", *lines])


def _members(kind: type) -> Iterator[str]:
    """Yield the public members that are of cpu-tiers."""
    for each in kind.__mro__:
        if each.__module__.startswith("cpu_tiers."):
            yield from (name for name in vars(each) if not name.startswith("_"))


def _signature(value: Any) -> str:
    """Return the parameters of a function or of a class, without their types."""
    if isinstance(value, property | cached_property) or not callable(value):
        return ""
    if value is cpu_tiers.api.CpuSet:
        return "(cpus=())"  # as of frozenset, whose signature not each Python tells
    parameters = inspect.signature(value).parameters.values()
    bare = [each.replace(annotation=each.empty, default=_default(each)) for each in parameters]
    return str(inspect.Signature(bare))


def _default(parameter: inspect.Parameter) -> object:
    is_shown = isinstance(parameter.default, bool | int | float | str | tuple | None)
    return parameter.default if is_shown or parameter.default is parameter.empty else _Other()


class _Other:
    """A default value that is no plain value."""

    def __repr__(self) -> str:
        return "..."


if __name__ == "__main__":
    FILE.write_text("".join(f"{entry}\n" for entry in entries()))
