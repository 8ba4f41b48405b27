"""The part of a host's weight that follows from preferred and avoided traits. Pure."""

from collections.abc import Iterable, Mapping
from operator import itemgetter

from cpu_tiers.weights.forest import Summary

_SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a provider, such as a pool of disks, that serves hosts of other trees."""


class SoftTraits:
    """The preferred and the avoided traits of a request, with their weights.

    :param configured: the weights by trait, or by ``PREFIX*``; below 0 for avoided traits. A name
        counts before a prefix, and a longer prefix before a shorter prefix.
    :param flavor: the weights by trait, which count before ``configured``.
    """

    def __init__(self, configured: Mapping[str, float], flavor: Mapping[str, float]) -> None:
        self._weights = {**configured, **flavor}
        prefixes = (name[:-1] for name in configured if name.endswith("*"))
        self._prefixes = sorted(prefixes, key=len, reverse=True)
        stems = {name.removesuffix("*") for name, weight in self._weights.items() if weight}
        self._stems = [s for s in stems if not any(o in s for o in stems - {s})]

    def of_hosts(
        self,
        summaries: Mapping[str, Summary],
        candidates: Iterable[tuple[str, Iterable[str]]] = (),
    ) -> dict[str, dict[str, float]]:
        """Return the soft traits of each host that has any, with their weights.

        A trait of several providers of a host counts once. The traits of a sharing provider count
        for each host with a candidate that uses the provider.

        :param summaries: ``provider_summaries`` of Placement's answer.
        :param candidates: the host of each candidate, by the uuid of its root provider, and the
            uuids of the providers from which the candidate takes resources.
        :returns: weights above or below 0, by the uuid of the root provider and by trait.
        """
        hosts: dict[str, dict[str, float]] = {}
        pools: dict[str, dict[str, float]] = {}
        for uuid, summary in summaries.items() if self._stems else ():
            # nova-scheduler runs this for every provider of a request. Mostly no host has a soft
            # trait, and a search of the joined names is faster than a look at each name.
            names = "\n".join(summary["traits"])
            for stem in self._stems:
                if stem in names:
                    weights = self._weights_of(summary["traits"])
                    hosts.setdefault(summary["root_provider_uuid"], {}).update(weights)
                    if _SHARES in summary["traits"]:
                        pools[uuid] = weights
                    break
        for host, providers in candidates if pools else ():
            for pool in pools.keys() & providers:
                hosts.setdefault(host, {}).update(pools[pool])
        return hosts

    def _weights_of(self, traits: Iterable[str]) -> dict[str, float]:
        weights = {trait: self._weight(trait) for trait in traits}
        return dict(filter(itemgetter(1), weights.items()))

    def _weight(self, trait: str) -> float:
        if trait in self._weights:
            return self._weights[trait]
        longest = next(filter(trait.startswith, self._prefixes), None)
        return 0.0 if longest is None else self._weights[f"{longest}*"]
