"""Both forms of a stored topology, and what cannot be stored or read."""

import json
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.guest.stored import (
    CURRENT,
    DEDICATED_IN_CPUSET,
    check_computes,
    from_stored,
    to_stored,
)
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import CpuPolicy
from cpu_tiers.model.guest import GuestCell, GuestTopology


def topology(policy: CpuPolicy | None, cpuset: CpuSet, pcpuset: CpuSet) -> GuestTopology:
    cell = GuestCell(id=0, cpuset=cpuset, pcpuset=pcpuset, memory_mb=64)
    return GuestTopology(
        cells=(cell,), cpu_policy=policy, cpu_thread_policy="require", page_size=2048
    )


PINNED = topology("dedicated", CpuSet(), CpuSet({0, 1, 2}))
FLOATING = topology("shared", CpuSet({0, 1, 2}), CpuSet())
MIXED = topology("mixed", CpuSet({0}), CpuSet({1, 2}))


def old(policy: str | None, **cell: object) -> dict[str, Any]:
    whole = {"id": 0, "memory_mb": 64, "cpuset": "0-2", **cell}
    rest = {"cpu_thread_policy": "require", "emulator_threads_policy": None}
    return {"form": 1, "cells": [whole], "cpu_policy": policy, "page_size": 2048, **rest}


@pytest.mark.parametrize("it", [PINNED, FLOATING, MIXED, topology(None, CpuSet({7}), CpuSet())])
def test_the_current_form_keeps_everything(it: GuestTopology) -> None:
    assert from_stored(json.loads(json.dumps(to_stored(it)))) == it


def test_the_old_form_has_dedicated_vcpus_in_cpuset() -> None:
    assert to_stored(PINNED, DEDICATED_IN_CPUSET) == old("dedicated") | {"realtime": ""}
    assert to_stored(FLOATING, DEDICATED_IN_CPUSET) == old("shared") | {"realtime": ""}
    assert to_stored(PINNED, CURRENT)["cells"] == [
        {"id": 0, "memory_mb": 64, "cpuset": "", "pcpuset": "0-2"}
    ]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(old("dedicated"), PINNED, id="dedicated vCPUs move"),
        pytest.param(old("shared"), FLOATING, id="shared vCPUs stay"),
        pytest.param(
            old("dedicated", cpuset="", pcpuset="0-2"), PINNED, id="moved without a new form"
        ),
        pytest.param(
            old(None), topology(None, CpuSet({0, 1, 2}), CpuSet()), id="no policy: the vCPUs stay"
        ),
    ],
)
def test_the_old_form_is_migrated(stored: dict[str, Any], expected: GuestTopology) -> None:
    assert from_stored(stored) == expected


def test_the_old_form_cannot_hold_a_mixed_guest() -> None:
    with pytest.raises(InvalidInput, match="upgrade the computes that read the topology"):
        to_stored(MIXED, DEDICATED_IN_CPUSET)
    with pytest.raises(InvalidInput, match="store a mixed guest in form 2"):
        from_stored(old("mixed"))


@pytest.mark.parametrize(
    ("stored", "faults"),
    [
        ({}, 1),
        ({"form": 3}, 1),
        (old("turbo", cpuset="2-0", memory_mb="64"), 3),
        (old("shared", pcpuset="1"), 1),
        (old("shared", cpuset=[0]), 1),
        (old("shared") | {"page_size": 0, "realtime": "x", "cpu_thread_policy": 7}, 3),
        ({"form": 2, "cells": [7, old("shared")]}, 3),
        ({"form": 2}, 1),
        ({"form": 2, "cells": [{"id": 0, "memory_mb": 1, "pcpuset": "0"}]}, 1),
        (old("dedicated") | {"form": 2}, 1),
    ],
)
def test_every_fault_is_told(stored: dict[str, Any], faults: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_stored(stored)
    assert len(caught.value.faults) == faults


def test_mixed_waits_for_the_oldest_compute() -> None:
    check_computes(None, 1)
    check_computes(PINNED, 51)
    check_computes(MIXED, 52)
    with pytest.raises(InvalidInput, match="service version 51; upgrade every nova-compute"):
        check_computes(MIXED, 51)
