"""The root provider of each provider of several trees. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

_Id = TypeVar("_Id", bound=Hashable)


def roots_of(parents: Mapping[_Id, _Id | None]) -> dict[_Id, _Id]:
    """Return the root of each provider, by the ids of the providers, in the order of ``parents``.

    Placement makes no cycles, but a garbled answer must not keep a program busy for ever.

    :param parents: the id of the parent of each provider. A provider is a root if it has no
        parent, or if its parent is no key; of a cycle, the last provider on the way is the root.
    """
    roots: dict[_Id, _Id] = {}
    for start in parents:
        way: dict[_Id, None] = {}
        here = start
        while here not in roots:
            way[here] = None
            parent = parents[here]
            if parent is None or parent not in parents or parent in way:
                roots[here] = here
            else:
                here = parent
        roots |= dict.fromkeys(way, roots[here])
    return {each: roots[each] for each in parents}
