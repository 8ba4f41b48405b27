"""Store a guest topology as plain values, also in the form that older computes read.

Both forms (decision D20) can be read, and both can be written while only some computes are
upgraded. For driver developers (docs/reference/library.rst). Spec: use-pcpu-vcpu-in-one-instance,
"Data model impact" and "Upgrade impact". Pure.
"""

from collections.abc import Mapping
from typing import Any, cast, get_args

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import CpuPolicy, EmulatorThreadsPolicy, ThreadPolicy
from cpu_tiers.model.guest import GuestCell, GuestTopology

DEDICATED_IN_CPUSET = 1
"""The form that computes older than Victoria read, without ``pcpuset``."""

CURRENT = 2
"""The form that tells shared vCPUs from dedicated vCPUs."""

MIXED_SERVICE_VERSION = 52
"""The service version of the first nova-compute with the CPU policy ``mixed`` (Victoria)."""

_WORDS = {
    "cpu_policy": get_args(CpuPolicy),
    "cpu_thread_policy": get_args(ThreadPolicy),
    "emulator_threads_policy": get_args(EmulatorThreadsPolicy),
}
_PAGES = ("small", "large", "any")


def check_computes(topology: GuestTopology | None, oldest: int) -> None:
    """Refuse a mixed guest while a nova-compute is too old for the CPU policy ``mixed``.

    :param oldest: the lowest service version of all nova-computes.
    :raises InvalidInput: the guest is mixed, and ``oldest`` is below
        :data:`MIXED_SERVICE_VERSION`.
    """
    if topology and topology.cpu_policy == "mixed" and oldest < MIXED_SERVICE_VERSION:
        raise InvalidInput.of(
            "CPU policy mixed",
            f"the oldest nova-compute has service version {oldest}",
            f"upgrade every nova-compute to service version {MIXED_SERVICE_VERSION} (Victoria)",
        )


def to_stored(topology: GuestTopology, form: int = CURRENT) -> dict[str, Any]:
    """Return a topology as values for JSON. CPU sets are text: ``0-3,8``.

    The cells of form 1 lack the key ``pcpuset``.

    :param form: :data:`CURRENT` or :data:`DEDICATED_IN_CPUSET`.
    :raises InvalidInput: the form is unknown, or the guest is mixed and the form is 1.
    """
    _check_form(form)
    if form == DEDICATED_IN_CPUSET and topology.cpu_policy == "mixed":
        raise InvalidInput.of(
            "CPU policy mixed",
            f"form {form} does not tell dedicated vCPUs from shared vCPUs",
            "upgrade the computes that read the topology, then store form 2",
        )
    return {
        "form": form,
        "cells": [_stored_cell(cell, form) for cell in topology.cells],
        "cpu_policy": topology.cpu_policy,
        "cpu_thread_policy": topology.cpu_thread_policy,
        "emulator_threads_policy": topology.emulator_threads_policy,
        "page_size": topology.page_size,
        "realtime": str(topology.realtime),
    }


def from_stored(stored: Mapping[str, Any]) -> GuestTopology:
    """Return the topology of a guest from the values of either form.

    :raises InvalidInput: the values are invalid. The error lists every fault.
    """
    form = stored.get("form")
    _check_form(form)
    faults = FaultList()
    policy = stored.get("cpu_policy")
    for key, words in _WORDS.items():
        if stored.get(key) not in (None, *words):
            faults.add(key, f"got {stored[key]!r}", f"give one of {', '.join(words)}")
    page = stored.get("page_size")
    if page is not None and page not in _PAGES and (type(page) is not int or page < 1):
        faults.add("page_size", f"got {page!r}", f"give kB, or one of {', '.join(_PAGES)}")
    if form == DEDICATED_IN_CPUSET and policy == "mixed":
        faults.add("cpu_policy", "mixed, in form 1", "store a mixed guest in form 2")
    cells, listed = [], stored.get("cells")
    if not isinstance(listed, list):
        raise InvalidInput.of("cells", f"got {listed!r}", "give a list of NUMA nodes")
    for number, cell in enumerate(listed):
        with faults:
            cells.append(
                _cell(f"cells[{number}]", cell, moves=form == 1 and policy == "dedicated")
            )
    if policy == "dedicated" and any(cell.cpuset for cell in cells):
        faults.add("cells", "shared vCPUs with the CPU policy dedicated", "use pcpuset")
    if policy in (None, "shared") and any(cell.pcpuset for cell in cells):
        given = f"dedicated vCPUs with the CPU policy {policy}"
        faults.add("cells", given, "give the CPU policy dedicated or mixed")
    realtime = CpuSet()
    with faults:
        realtime = _cpus("realtime", stored.get("realtime", ""))
    faults.raise_if_any()
    return GuestTopology(
        cells=tuple(cells),
        cpu_policy=policy,
        cpu_thread_policy=stored.get("cpu_thread_policy"),
        emulator_threads_policy=stored.get("emulator_threads_policy"),
        page_size=page,
        realtime=realtime,
    )


def _check_form(form: object) -> None:
    if form not in (DEDICATED_IN_CPUSET, CURRENT):
        raise InvalidInput.of("form", f"got {form!r}", "give 1 or 2")


def _stored_cell(cell: GuestCell, form: int) -> dict[str, Any]:
    both = {"id": cell.id, "memory_mb": cell.memory_mb}
    if form == DEDICATED_IN_CPUSET:
        return {**both, "cpuset": str(CpuSet(cell.cpuset | cell.pcpuset))}
    return {**both, "cpuset": str(cell.cpuset), "pcpuset": str(cell.pcpuset)}


def _cell(where: str, cell: object, *, moves: bool) -> GuestCell:
    if not isinstance(cell, Mapping):
        raise InvalidInput.of(where, f"got {cell!r}", "give a NUMA node")
    faults = FaultList()
    sets = [CpuSet(), CpuSet()]
    for index, key in enumerate(("cpuset", "pcpuset")):
        with faults:
            sets[index] = _cpus(f"{where}, {key}", cell.get(key, ""))
    numbers = {"id": cell.get("id"), "memory_mb": cell.get("memory_mb")}
    for key, value in numbers.items():
        if type(value) is not int or value < 0:
            faults.add(f"{where}, {key}", f"got {value!r}", "give a whole number")
    shared, dedicated = sets
    # Nova moved the vCPUs of some cells to pcpuset without a new version of the object.
    if moves and not dedicated:
        shared, dedicated = dedicated, shared
    if shared & dedicated:
        given = f"vCPUs {CpuSet(shared & dedicated)} in cpuset and in pcpuset"
        faults.add(where, given, "give each vCPU in one of them")
    faults.raise_if_any()
    whole = cast("dict[str, int]", numbers)
    return GuestCell(
        id=whole["id"], memory_mb=whole["memory_mb"], cpuset=shared, pcpuset=dedicated
    )


def _cpus(where: str, text: object) -> CpuSet:
    if not isinstance(text, str):
        raise InvalidInput.of(where, f"got {text!r}", "give a CPU set as text, such as 0-3,8")
    return CpuSet.parse(text, where=where) if text else CpuSet()
