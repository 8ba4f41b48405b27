"""How rare the hosts of a kind are, for the scoring ``fragmentation``.

The kind of a host is the set of its traits that request groups name. The cost of a host is higher
if few hosts with room have its kind, see ``docs/weigher.rst``. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from functools import cached_property
from math import sqrt

from cpu_tiers.weights.tree import Summary

RARITY_WEIGHT = 0.03
"""The weight of the rarity of a host. Chosen on a recorded cluster, see ``docs/evidence.rst``."""


class HostKinds:
    """The kinds of the hosts of a request.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param wanted: the traits that request groups ask for; if empty, all hosts are of one kind.
    """

    def __init__(self, summaries: Mapping[str, Summary], wanted: frozenset[str]) -> None:
        self._kinds: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        self._capacity: defaultdict[str, defaultdict[str, int]]
        self._capacity = defaultdict(lambda: defaultdict(int))
        # Without such traits, which is the rule, the summaries need not be read again.
        for summary in summaries.values() if wanted else ():
            root = summary["root_provider_uuid"]
            self._kinds[root] |= wanted.intersection(summary["traits"])
            for name, amounts in summary["resources"].items():
                self._capacity[root][name] += amounts["capacity"]

    def rarities(self, roots: Collection[str]) -> list[float]:
        """Return the weighted rarity of each host among these hosts; empty if all are alike."""
        counts = Counter(self._kinds[root] for root in roots) if self._kinds else {}
        if len(counts) < 2:
            return []
        of_kind = {kind: sqrt(len(roots) / count) - 1 for kind, count in counts.items()}
        return [RARITY_WEIGHT * of_kind[self._kinds[root]] for root in roots]

    def rarity(self, root: str) -> float:
        """Return the weighted rarity of a host among all hosts."""
        return self._among_all.get(root, 0.0)

    @cached_property
    def _among_all(self) -> Mapping[str, float]:
        return dict(zip(self._kinds, self.rarities(self._kinds), strict=False))

    def is_idle(self, root: str, free: Mapping[str, int]) -> bool:
        """Tell whether nothing of a host with these free amounts is in use."""
        capacity = self._capacity[root]
        return all(amount == capacity[name] for name, amount in free.items())
