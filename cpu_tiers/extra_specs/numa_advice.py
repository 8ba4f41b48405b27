"""Advice about the NUMA nodes of a flavor, for those who write flavors. Pure."""

import re
from collections.abc import Iterator, Sequence

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs.numa import CPUS, MEMORY, NODES, GuestNode, asks_for_nodes
from cpu_tiers.model.flavor import Flavor, Image


def idle_keys(flavor: Flavor, nodes: Sequence[GuestNode]) -> Iterator[Fault]:
    """Yield a fault for each key that describes a node which servers of a flavor do not have.

    Nova accepts such keys, and they have no effect.

    :param nodes: the nodes of a server of the flavor; none if the server has no NUMA topology.
    """
    described = {f"{key}.{number}" for key in (CPUS, MEMORY) for number in range(len(nodes))}
    for key in flavor.extra_specs:
        if key not in described and re.fullmatch(rf"({CPUS}|{MEMORY})\.[0-9]+", key):
            given = f"no effect on a server of {len(nodes)} NUMA nodes, numbered from 0"
            yield Fault(flavor.spec(key), given, f"correct {NODES}, or remove the key")


def divided(flavor: Flavor, image: Image | None, most: int) -> Iterator[tuple[int, Flavor]]:
    """Yield the flavor with 2 and more equal nodes, if neither flavor nor image ask for nodes.

    :param most: the largest number of nodes.
    """
    for count in range(2, 1 if asks_for_nodes(flavor, image) else most + 1):
        if not flavor.vcpus % count and not flavor.memory_mb % count:
            specs = {**flavor.extra_specs, NODES: str(count)}
            yield count, flavor._replace(extra_specs=specs)
