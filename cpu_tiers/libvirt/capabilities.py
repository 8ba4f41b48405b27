"""Read the topology of a host from the capabilities XML of libvirt.

Source: ``virsh capabilities``, https://libvirt.org/formatcaps.html.
"""

from collections.abc import Iterable, Sequence

from lxml.etree import _Element

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.libvirt.document import CpuSetReader, read_root, whole_number
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages

_ALLOWED = "give the output of `virsh capabilities`"


def parse_capabilities(text: bytes, *, where: str) -> HostTopology:
    """Return the topology of a host.

    :param text: the XML document, in the encoding that its declaration names.
    :param where: the name of the document in an error.
    :raises InvalidInput: the text is too long, is not XML, has a document type, or has no valid
        topology. The error lists every fault of the topology.
    """
    host = read_root(text, tag="capabilities", where=where, allowed=_ALLOWED).find("host")
    cells = [] if host is None else host.findall("topology/cells/cell")
    if host is None or not cells:
        raise InvalidInput.of(where, "no <host><topology><cells> with a cell", _ALLOWED)
    faults = FaultList()
    cpu_sets = CpuSetReader(faults)
    topology = HostTopology(
        arch=host.findtext("cpu/arch", "").strip() or "x86_64",
        cells=tuple(_cell(cell, where, faults, cpu_sets) for cell in cells),
    )
    _check(topology, where, faults)
    faults.raise_if_any()
    return topology


def _cell(cell: _Element, where: str, faults: FaultList, cpu_sets: CpuSetReader) -> NumaCell:
    number = whole_number(cell.get("id"), f"{where}, line {cell.sourceline}, cell id", faults)
    place = f"{where}, NUMA cell {number}"
    memory, memory_kb = cell.find("memory"), 0
    if memory is not None:
        _check_unit(memory, f"{place}, memory", faults)
        memory_kb = whole_number(memory.text, f"{place}, memory", faults)
    elements = cell.findall("cpus/cpu")
    cpus = [whole_number(cpu.get("id"), f"{place}, cpu id", faults) for cpu in elements]
    if len(set(cpus)) != len(cpus) or any(cpu > MAX_CPU for cpu in cpus):
        faults.add(place, f"a CPU twice, or a CPU above {MAX_CPU}", _ALLOWED)
    return NumaCell(
        id=number,
        cpus=CpuSet(cpus),
        memory_kb=memory_kb,
        cores=_cores(elements, cpus, place, cpu_sets),
        pages=_pages(cell, place, faults),
        socket=_socket(elements, place, faults),
    )


def _check_unit(element: _Element, place: str, faults: FaultList) -> None:
    if element.get("unit", "KiB") != "KiB":
        faults.add(place, f"the unit {element.get('unit')}", "libvirt gives KiB")


def _cores(
    elements: Sequence[_Element], cpus: Iterable[int], place: str, cpu_sets: CpuSetReader
) -> tuple[CpuSet, ...]:
    """Return the cores that ``siblings`` of CPUs name, without the CPUs of other cells."""
    cell_cpus = frozenset(cpus)
    cores: dict[str, CpuSet] = {}  # by text: comparing large sets for each CPU would take long
    for element, cpu in zip(elements, cpus, strict=True):
        text = element.get("siblings", "")
        if text and text not in cores:
            siblings = cpu_sets.read(text, f"{place}, CPU {cpu}, siblings") or CpuSet()
            cores[text] = CpuSet(siblings & cell_cpus)
    return tuple(sorted(set(filter(None, cores.values())), key=min))


def _pages(cell: _Element, place: str, faults: FaultList) -> tuple[Pages, ...]:
    pages = []
    for element in cell.findall("pages"):
        _check_unit(element, f"{place}, pages", faults)
        size = whole_number(element.get("size"), f"{place}, page size", faults)
        total = whole_number(element.text, f"{place}, pages of {size} kB", faults)
        pages.append(Pages(size_kb=size, total=total))
    return tuple(pages)


def _socket(elements: Iterable[_Element], place: str, faults: FaultList) -> int | None:
    """Return the socket of a cell, or ``None`` if its CPUs name no socket or several sockets."""
    sockets = {
        whole_number(text, f"{place}, socket_id", faults)
        for cpu in elements
        if (text := cpu.get("socket_id")) is not None
    }
    return sockets.pop() if len(sockets) == 1 else None


def _check(topology: HostTopology, where: str, faults: FaultList) -> None:
    # A number that could not be read is 0 here, and would cause a second, misleading fault.
    if faults.faults:
        return
    ids = [cell.id for cell in topology.cells]
    if len(set(ids)) != len(ids):
        faults.add(where, f"NUMA cells {ids}", "give each cell an id of its own")
    if sum(len(cell.cpus) for cell in topology.cells) != len(topology.cpus):
        faults.add(where, "a CPU in two NUMA cells", "give each CPU in one cell")
    if not topology.cpus:
        faults.add(where, "a host without CPUs", _ALLOWED)
    if not any(cell.memory_kb for cell in topology.cells):
        faults.add(where, "no NUMA cell has memory", _ALLOWED)
    for cell in topology.cells:
        place, sizes = f"{where}, NUMA cell {cell.id}", [pages.size_kb for pages in cell.pages]
        if len(set(sizes)) != len(sizes) or 0 in sizes:
            faults.add(place, f"pages of sizes {sizes}", "give each size once, and none of 0")
        core_cpus = frozenset[int]().union(*cell.cores)
        if not faults.faults and sum(map(len, cell.cores)) != len(core_cpus):
            cores = ", ".join(map(str, cell.cores))
            faults.add(place, f"cores {cores}", "give all CPUs of a core the same siblings")
