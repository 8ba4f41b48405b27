"""How rare the hosts of a kind are, for the scoring ``fragmentation``.

The kind of a host is the set of its traits that request groups name. The cost of a host is higher
if few hosts with room have its kind, see ``docs/reference/scores.rst``. Pure.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from math import sqrt

RARITY_WEIGHT = 0.03
"""The weight of the rarity of a host. Chosen on a recorded cluster, see
``docs/contributor/evidence.rst``."""


class HostKinds:
    """The kinds of the hosts of a request.

    :param kinds: the kind of each host by the uuid of the root provider; empty if no request
        names a trait.
    """

    def __init__(self, kinds: Mapping[str, frozenset[str]]) -> None:
        self._kinds = kinds

    def rarities(self, roots: Collection[str]) -> list[float]:
        """Return the weighted rarity of each host among these hosts; empty if all are alike."""
        counts = Counter(self._kinds[root] for root in roots) if self._kinds else {}
        if len(counts) < 2:
            return []
        of_kind = {
            kind: RARITY_WEIGHT * (sqrt(len(roots) / count) - 1) for kind, count in counts.items()
        }
        return [of_kind[self._kinds[root]] for root in roots]

    def rarity(self, root: str) -> float:
        """Return the weighted rarity of a host among all hosts."""
        return self._among_all.get(root, 0.0)

    @cached_property
    def _among_all(self) -> Mapping[str, float]:
        return dict(zip(self._kinds, self.rarities(self._kinds), strict=False))
