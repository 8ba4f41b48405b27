"""The NUMA nodes and the memory pages that a flavor or an image requests for a guest.

Nova's keys are ``hw:numa_nodes``, ``hw:numa_cpus.N`` and ``hw:numa_mem.N``, and the
image properties of the same names with ``_``. A key may be set by the flavor or by
the image, and not by both (ConflictingExtraSpecs). If only ``hw:numa_cpus.N`` is set, the memory
is divided evenly, as in an example of the spec numa-topology-with-rps; Nova demands both keys.
Nova reads ``hw:mem_page_size`` of the flavor. If the flavor says ``any`` or ``large``, the image
may choose with ``hw_mem_page_size``. Pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, Fault, FaultList, InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image, PageSize, properties
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.numa import page_size_of, page_trait

NODES, IMAGE_NODES = "hw:numa_nodes", "hw_numa_nodes"
CPUS, IMAGE_CPUS = "hw:numa_cpus", "hw_numa_cpus"
MEMORY, IMAGE_MEMORY = "hw:numa_mem", "hw_numa_mem"

MAX_LISTED = 128
"""The largest number of nodes that keys can describe, as in Nova."""

PAGE_SIZE = "hw:mem_page_size"
IMAGE_PAGE_SIZE = "hw_mem_page_size"
_WORDS: dict[str, PageSize] = {"small": "small", "large": "large", "any": "any"}
_NUMBER = r"[0-9]{1,10}"
# The units of oslo_utils.strutils.string_to_bytes, with which Nova reads the key.
_WITH_UNIT = r"([0-9]{0,10}\.?[0-9]{1,10})(?:([KMGT])i?)?(B|b|bit)"

_BYTES = {None: 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_PAGE_SIZES = "give small, large, any, a size in kB, or a size with its unit, such as 2MB"

_FIRST_CPUS = (f"{CPUS}.0", f"{IMAGE_CPUS}.0")
"""The keys for the vCPUs of the first node."""


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


def has_cpus_only(specs: Mapping[str, str], image_properties: Mapping[str, str]) -> bool:
    """Return whether flavor or image describe the CPUs of nodes, and the memory of no node."""
    keys = {*specs, *image_properties}
    return not keys.isdisjoint(_FIRST_CPUS) and not _has_any_memory(keys)


def node_count(flavor: Flavor, image: Image | None) -> int | None:
    """Return the number of nodes, or ``None`` if neither flavor nor image set it."""
    text, where = flavor.extra_specs.get(NODES), flavor.spec(NODES)
    if image is not None and IMAGE_NODES in image.properties:
        if text is not None:
            raise _from_both(flavor, NODES, IMAGE_NODES)
        text, where = image.properties[IMAGE_NODES], image.spec(IMAGE_NODES)
    if text is not None and not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise InvalidInput.of(where, f"got {text!r}", "give a whole number from 1 to 999999")
    return None if text is None else int(text)


def guest_nodes(
    flavor: Flavor, image: Image | None, count: int | None, every: CpuSet
) -> tuple[GuestNode, ...]:
    """Return the nodes, with the vCPUs and the memory that keys describe, else of equal size.

    :param count: the number of nodes; ``None`` if the number itself has a fault. Only the keys
        that describe nodes are checked then.
    :param every: all vCPUs of the server.
    :raises InvalidInput: with every fault of the keys; or the CPUs or the memory of the nodes
        do not add up to the flavor.
    """
    keys = {*flavor.extra_specs, *properties(image)}
    # A flavor with hw:numa_mem.1 and without hw:numa_mem.0 is a mistake, not a request for
    # equal memory.
    has_memory = _has_any_memory(keys)
    if has_memory or not keys.isdisjoint(_FIRST_CPUS):
        return _described_nodes(flavor, image, count, every, has_memory=has_memory)
    return () if count is None else _equal_nodes(flavor, count)


def _described_nodes(
    flavor: Flavor, image: Image | None, count: int | None, every: CpuSet, *, has_memory: bool
) -> tuple[GuestNode, ...]:
    """Return the nodes whose vCPUs or memory keys describe.

    :param has_memory: whether a key describes the memory of any node.
    """
    faults = FaultList()
    cpus = faults.read(_listed, flavor, image, CPUS, IMAGE_CPUS) or []
    memory = faults.read(_listed, flavor, image, MEMORY, IMAGE_MEMORY) or []
    faults.raise_if_any()
    count = count or max(1, len(cpus), len(memory))
    is_incomplete = len(cpus) != count or (has_memory and len(memory) != count)
    if is_incomplete and (fault := _not_from_zero(flavor, image)):
        faults.add(*fault)
    elif is_incomplete:
        faults.add(
            f"flavor {flavor.name}, {count} NUMA nodes",
            f"{CPUS}.N of {len(cpus)} nodes and {MEMORY}.N of {len(memory)}",
            "describe the CPUs and the memory of every node, or of none",
        )
    complete = not faults.faults
    cpu_sets = _read_cpus(cpus, every, faults, complete=complete)
    if complete and not memory:
        memory = faults.read(_equal_memory, flavor, count) or []
    amounts = _read_memory(flavor, memory, faults, complete=complete)
    faults.raise_if_any()
    return tuple(map(GuestNode, cpu_sets, amounts))


def _from_both(flavor: Flavor, key: str, image_key: str) -> InvalidInput:
    return ConflictingExtraSpecs.of(
        flavor.spec(key), f"the image has {image_key}, too", "set it in the flavor or in the image"
    )


def _listed(flavor: Flavor, image: Image | None, key: str, image_key: str) -> list[_Setting]:
    """Return the values of ``key.0``, ``key.1`` and so on, from flavor or image, not from both."""
    flavor_values = _numbered(flavor, flavor.extra_specs, key)
    image_values = [] if image is None else _numbered(image, image.properties, image_key)
    if flavor_values and image_values:
        raise _from_both(flavor, key, image_key)
    return flavor_values or image_values


def _numbered(source: Flavor | Image, texts: Mapping[str, str], key: str) -> list[_Setting]:
    listed: list[_Setting] = []
    while (name := f"{key}.{len(listed)}") in texts and len(listed) < MAX_LISTED:
        listed.append(_Setting(source.spec(name), texts[name]))
    return listed


def _not_from_zero(flavor: Flavor, image: Image | None) -> Fault | None:
    """Return a fault if the first key of flavor or image does not describe node 0."""
    for source, texts, keys in (
        (flavor, flavor.extra_specs, (CPUS, MEMORY)),
        (image, properties(image), (IMAGE_CPUS, IMAGE_MEMORY)),
    ):
        for key in keys:
            names = [name for name in texts if re.fullmatch(rf"{key}\.[0-9]+", name)]
            if source is not None and names and f"{key}.0" not in names:
                given = f"there is no {key}.0"
                return Fault(source.spec(min(names)), given, "number the nodes from 0")
    return None


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


def _has_any_memory(keys: Iterable[str]) -> bool:
    """Return whether flavor or image describe the memory of any node, in any order."""
    return any(key.startswith((f"{MEMORY}.", f"{IMAGE_MEMORY}.")) for key in keys)


def _equal_memory(flavor: Flavor, count: int) -> list[_Setting]:
    if flavor.memory_mb % count:
        raise InvalidInput.of(
            f"flavor {flavor.name}, {count} NUMA nodes",
            f"{flavor.memory_mb} MiB",
            f"memory that cannot be divided evenly needs {MEMORY}.N",
        )
    return [_Setting(f"flavor {flavor.name}, ram", str(flavor.memory_mb // count))] * count


def _read_cpus(
    settings: Sequence[_Setting], every: CpuSet, faults: FaultList, *, complete: bool
) -> list[CpuSet]:
    """Return the vCPUs of the nodes, and check that each vCPU is in exactly one node.

    :param complete: whether the settings describe all nodes; otherwise another node may have
        the vCPUs that are missing.
    """
    cpu_sets = []
    seen: set[int] = set()
    for where, text in settings:
        cpus = faults.read(CpuSet.parse, text, where=where)
        if cpus is None:
            continue
        if not cpus <= every:
            faults.add(where, repr(text), f"the server has the vCPUs {every}")
        if not seen.isdisjoint(cpus):
            faults.add(where, f"{text!r}", f"the vCPUs {CpuSet(seen & cpus)} are in another node")
        seen |= cpus
        cpu_sets.append(cpus)
    missing = CpuSet(every - seen)
    if complete and missing and len(cpu_sets) == len(settings):
        faults.add(
            settings[0].where, f"no node has the vCPUs {missing}", "put each vCPU into a node"
        )
    return cpu_sets


def _read_memory(
    flavor: Flavor, settings: Sequence[_Setting], faults: FaultList, *, complete: bool
) -> list[int]:
    """Return the memory of the nodes in MiB, and check that the sum is the flavor's memory.

    :param complete: whether the settings describe all nodes.
    """
    amounts = []
    for where, text in settings:
        if re.fullmatch(r"[1-9][0-9]{0,9}", text):
            amounts.append(int(text))
        else:
            faults.add(where, f"got {text!r}", "give MiB, a whole number from 1")
    total = sum(amounts)
    if complete and len(amounts) == len(settings) and amounts and total != flavor.memory_mb:
        faults.add(
            f"flavor {flavor.name}, {MEMORY}.N",
            f"{total} MiB in all",
            f"the nodes must have the {flavor.memory_mb} MiB of the flavor",
        )
    return amounts


def asks_for_pages(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image set a page size, valid or not."""
    return PAGE_SIZE in flavor.extra_specs or IMAGE_PAGE_SIZE in properties(image)


def page_size(flavor: Flavor, image: Image | None) -> PageSize | None:
    """Return the page size, or ``None`` if neither flavor nor image request a size.

    :raises InvalidInput: a page cannot have this size.
    :raises ConflictingExtraSpecs: the image requests a size, and the flavor does not
        leave the choice to the image.
    """
    faults = FaultList()
    size, flavor_size = None, flavor.extra_specs.get(PAGE_SIZE)
    if flavor_size is not None:
        size = faults.read(_parse_page_size, flavor_size, flavor.spec(PAGE_SIZE))
    if image is not None and IMAGE_PAGE_SIZE in image.properties:
        image_size = image.properties[IMAGE_PAGE_SIZE]
        if not faults.faults and size not in ("any", "large"):
            raise ConflictingExtraSpecs.of(
                f"flavor {flavor.name} and image {image.name}",
                f"the image has {IMAGE_PAGE_SIZE} {image_size!r}, the flavor no {PAGE_SIZE}"
                if flavor_size is None
                else f"the flavor has {PAGE_SIZE} {flavor_size!r},"
                f" the image {IMAGE_PAGE_SIZE} {image_size!r}",
                f"an image may choose a size if the flavor has {PAGE_SIZE} any or large",
            )
        size = faults.read(_parse_page_size, image_size, image.spec(IMAGE_PAGE_SIZE))
    faults.raise_if_any()
    return size


def absent_pages(flavor: Flavor, image: Image | None, traits: Collection[str]) -> Fault | None:
    """Return a fault if no host reports pages of the size that a guest requests.

    The result is ``None`` if a host reports such pages. The result is also ``None`` if no
    host reports any pages, because the pages of the hosts are unknown in this case.

    :param traits: the traits of the providers in Placement. The traits of page
        sizes count, see "Memory pagesize RP" of the spec numa-topology-with-rps.
    :raises InvalidInput: as :func:`page_size`.
    """
    requested = page_size(flavor, image)
    trait = None if requested is None else page_trait(requested)
    sizes = sorted(size for name in traits if (size := page_size_of([name])) is not None)
    if trait is None or trait in traits or not sizes:
        return None
    by_image = image is not None and IMAGE_PAGE_SIZE in image.properties
    pages = f"pages of {requested} kB" if isinstance(requested, int) else f"{requested} pages"
    return Fault(
        where=image.spec(IMAGE_PAGE_SIZE) if image and by_image else flavor.spec(PAGE_SIZE),
        given=f"asks for {pages}, and no host that reports its NUMA nodes has such pages",
        allowed=f"these hosts have pages of {', '.join(map(str, sizes))} kB",
    )


def _parse_page_size(text: str, where: str) -> PageSize:
    if text in _WORDS:
        return _WORDS[text]
    kilobytes = _kilobytes(text)
    if kilobytes is None or not 1 <= kilobytes <= MAX_AMOUNT or kilobytes % 1:
        raise InvalidInput.of(where, f"got {text!r}", _PAGE_SIZES)
    return int(kilobytes)


def _kilobytes(text: str) -> Decimal | None:
    if re.fullmatch(_NUMBER, text):
        return Decimal(text)
    match = re.fullmatch(_WITH_UNIT, text)
    if match is None:
        return None
    number, prefix, unit = match.groups()
    size = Decimal(number) * _BYTES[prefix] / 1024
    return size if unit == "B" else size / 8  # "b" and "bit", as in oslo_utils.strutils
