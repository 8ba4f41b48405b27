"""The NUMA nodes that a flavor or an image requests for a guest: vCPUs and memory.

Nova's keys are ``hw:numa_nodes``, ``hw:numa_cpus.N`` and ``hw:numa_mem.N``, and the
image properties of the same names with ``_``. A key may be set by the flavor or by
the image, not by both. If only ``hw:numa_cpus.N`` is set, the memory is divided
evenly, as in an example of the spec numa-topology-with-rps; Nova demands both
keys. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList, InvalidInput
from cpu_tiers.extra_specs.choices import properties
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image

NODES, IMAGE_NODES = "hw:numa_nodes", "hw_numa_nodes"
CPUS, IMAGE_CPUS = "hw:numa_cpus", "hw_numa_cpus"
MEMORY, IMAGE_MEMORY = "hw:numa_mem", "hw_numa_mem"

MAX_LISTED = 128
"""The largest number of nodes that keys can describe, as in Nova."""


class GuestNode(NamedTuple):
    """The vCPUs and the memory of a NUMA node of a guest."""

    cpus: CpuSet
    memory_mb: int


class _Setting(NamedTuple):
    """The text of a key, and the name of the key in an error message."""

    where: str
    text: str


def asks_for_nodes(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image set a number of nodes, valid or not."""
    return NODES in flavor.extra_specs or IMAGE_NODES in properties(image)


def node_count(flavor: Flavor, image: Image | None) -> int | None:
    """Return the number of nodes, or ``None`` if neither flavor nor image set it.

    :raises InvalidInput: the number is not a whole number from 1.
    :raises ConflictingExtraSpecs: flavor and image both set the number.
    """
    settings = [
        _Setting(source.spec(key), texts[key])
        for source, key, texts in (
            (flavor, NODES, flavor.extra_specs),
            (image, IMAGE_NODES, properties(image)),
        )
        if source is not None and key in texts
    ]
    if len(settings) == 2:
        raise _from_both(flavor, NODES, IMAGE_NODES)
    for where, text in settings:
        if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
            raise InvalidInput.of(where, f"got {text!r}", "give a whole number from 1 to 999999")
        return int(text)
    return None


def guest_nodes(
    flavor: Flavor, image: Image | None, count: int, every: CpuSet
) -> tuple[GuestNode, ...]:
    """Return the nodes, with the vCPUs and the memory that keys describe, else of equal size.

    :param count: the number of nodes.
    :param every: all vCPUs of the server.
    :raises InvalidInput: the CPUs or the memory of the nodes do not add up to the
        flavor.
    :raises ConflictingExtraSpecs: flavor and image both describe the nodes.
    """
    faults = FaultList()
    cpus: Sequence[_Setting] = ()
    memory: Sequence[_Setting] = ()
    with faults:
        cpus = _listed(flavor, image, CPUS, IMAGE_CPUS)
    with faults:
        memory = _listed(flavor, image, MEMORY, IMAGE_MEMORY)
    faults.raise_if_any()
    if not cpus and not memory:
        return _equal_nodes(flavor, count)
    # A flavor with hw:numa_mem.1 and without hw:numa_mem.0 is a mistake, not a request for
    # equal memory.
    has_memory = memory or _has_any_memory(flavor, image)
    if len(cpus) != count or (has_memory and len(memory) != count):
        raise InvalidInput.of(
            f"flavor {flavor.name}, {count} NUMA nodes",
            f"{CPUS}.N of {len(cpus)} nodes and {MEMORY}.N of {len(memory)}",
            "describe the CPUs and the memory of every node, or of none",
        )
    return _described_nodes(flavor, cpus, memory or _equal_memory(flavor, count), every)


def _from_both(flavor: Flavor, key: str, image_key: str) -> InvalidInput:
    return ConflictingExtraSpecs.of(
        flavor.spec(key), f"the image has {image_key}, too", "set it in the flavor or in the image"
    )


def _listed(flavor: Flavor, image: Image | None, key: str, image_key: str) -> list[_Setting]:
    """Return the values of ``key.0``, ``key.1`` and so on, from flavor or image.

    :raises ConflictingExtraSpecs: flavor and image both have such keys.
    """
    of_flavor = _numbered(flavor, flavor.extra_specs, key)
    of_image = [] if image is None else _numbered(image, image.properties, image_key)
    if of_flavor and of_image:
        raise _from_both(flavor, key, image_key)
    return of_flavor or of_image


def _numbered(source: Flavor | Image, texts: Mapping[str, str], key: str) -> list[_Setting]:
    listed: list[_Setting] = []
    while (name := f"{key}.{len(listed)}") in texts and len(listed) < MAX_LISTED:
        listed.append(_Setting(source.spec(name), texts[name]))
    return listed


def _equal_nodes(flavor: Flavor, count: int) -> tuple[GuestNode, ...]:
    if flavor.vcpus % count or flavor.memory_mb % count:
        raise InvalidInput.of(
            f"flavor {flavor.name}, {count} NUMA nodes",
            f"{flavor.vcpus} vCPUs and {flavor.memory_mb} MiB",
            f"nodes of unequal size need {CPUS}.N and {MEMORY}.N",
        )
    cpus, memory_mb = flavor.vcpus // count, flavor.memory_mb // count
    starts = range(0, flavor.vcpus, cpus)
    return tuple(GuestNode(CpuSet(range(at, at + cpus)), memory_mb) for at in starts)


def _has_any_memory(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image describe the memory of any node, in any order."""
    keys = (*flavor.extra_specs, *properties(image))
    return any(key.startswith((f"{MEMORY}.", f"{IMAGE_MEMORY}.")) for key in keys)


def _equal_memory(flavor: Flavor, count: int) -> list[_Setting]:
    if flavor.memory_mb % count:
        raise InvalidInput.of(
            f"flavor {flavor.name}, {count} NUMA nodes",
            f"{flavor.memory_mb} MiB",
            f"memory that cannot be divided evenly needs {MEMORY}.N",
        )
    return [_Setting(f"flavor {flavor.name}, ram", str(flavor.memory_mb // count))] * count


def _described_nodes(
    flavor: Flavor, cpus: Sequence[_Setting], memory: Sequence[_Setting], every: CpuSet
) -> tuple[GuestNode, ...]:
    faults = FaultList()
    nodes = []
    for (where, text), (memory_where, memory_text) in zip(cpus, memory, strict=True):
        with faults:
            node_cpus = CpuSet.parse(text, where=where)
        if re.fullmatch(r"[1-9][0-9]{0,9}", memory_text):
            memory_mb = int(memory_text)
        else:
            faults.add(memory_where, f"got {memory_text!r}", "give MiB, a whole number from 1")
        if not faults.faults:
            nodes.append(GuestNode(node_cpus, memory_mb))
    faults.raise_if_any()
    with faults:
        _check_cpus(cpus, nodes, every)
    total = sum(node.memory_mb for node in nodes)
    if total != flavor.memory_mb:
        faults.add(
            f"flavor {flavor.name}, {MEMORY}.N",
            f"{total} MiB in all",
            f"the nodes must have the {flavor.memory_mb} MiB of the flavor",
        )
    faults.raise_if_any()
    return tuple(nodes)


def _check_cpus(settings: Sequence[_Setting], nodes: Sequence[GuestNode], every: CpuSet) -> None:
    """Check that each vCPU of the server is in exactly one node.

    :raises InvalidInput: a vCPU is in no node or in two nodes, or does not exist.
    """
    faults = FaultList()
    seen: set[int] = set()
    for (where, text), (cpus, _) in zip(settings, nodes, strict=True):
        if not cpus <= every:
            faults.add(where, repr(text), f"the server has the vCPUs {every}")
        if not seen.isdisjoint(cpus):
            faults.add(where, f"{text!r}", f"the vCPUs {CpuSet(seen & cpus)} are in another node")
        seen |= cpus
    if missing := CpuSet(every - seen):
        faults.add(
            settings[0].where, f"no node has the vCPUs {missing}", "put each vCPU into a node"
        )
    faults.raise_if_any()
