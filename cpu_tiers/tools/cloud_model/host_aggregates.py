"""The host aggregates of Nova, by their metadata: isolation, and multipliers of weighers. Pure.

Source: Nova, ``scheduler/request_filter.py`` (``isolate_aggregates``) and
``scheduler/utils.py`` (``get_weight_multiplier``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotAggregate

_TRAIT = "trait:"


class HostAggregates(NamedTuple):
    """The host aggregates of a cloud.

    :param by_uuid: the aggregates by the uuid that they have in Nova and in Placement.
    :param unknown: why the aggregates are not known; empty if they are.
    """

    by_uuid: Mapping[str, SnapshotAggregate] = MappingProxyType({})
    unknown: str = ""

    def isolated(self, traits: Iterable[str]) -> frozenset[str]:
        """Return the aggregates whose hosts do not take a server, as their metadata say.

        :param traits: the traits that the server requires of any provider. The hosts of an
            aggregate with ``trait:NAME=required`` only take servers that require the trait.
        """
        granted = {f"{_TRAIT}{name}" for name in traits}
        return frozenset(
            uuid
            for uuid, aggregate in self.by_uuid.items()
            for key, value in aggregate.metadata.items()
            if key.startswith(_TRAIT) and value == "required" and key not in granted
        )

    def texts(self, key: str) -> dict[str, set[str]]:
        """Return the values of a metadata key by host, for the hosts that have any."""
        texts: dict[str, set[str]] = {}
        for aggregate in self.by_uuid.values():
            if key in aggregate.metadata:
                for host in aggregate.hosts:
                    texts.setdefault(host, set()).add(aggregate.metadata[key])
        return texts

    def multipliers(self, key: str) -> dict[str, float]:
        """Return the smallest multiplier of the aggregates of each host, if any sets a multiplier.

        As in Nova, a host with a malformed number has the multiplier of nova.conf.
        """
        numbers = {}
        for host, texts in self.texts(key).items():
            with suppress(ValueError):
                numbers[host] = min(map(float, texts))
        return numbers

    def names_in(self, text: str) -> str:
        """Return the name of a constraint with the names of aggregates for their uuids."""
        for kind, words in (("!member_of=", "!aggregate "), ("member_of=in:", "aggregate ")):
            if text.startswith(kind):
                uuids = text.removeprefix(kind).split(",")
                names = (self.by_uuid[u].name if u in self.by_uuid else u for u in uuids)
                return words + " or ".join(sorted(names))
        return text
