"""The kernel gives guests the promised CPU time: contests of docs/contributor/measured.rst."""

import os
from pathlib import Path

import libvirt
import pytest

from tests.draws import in_turn
from tests.libvirt.cases import (
    ASLEEP,
    EMULATOR,
    LIGHT,
    PINNED,
    PROMISED,
    SPEC,
    VCPUS,
    WHOLE_CPU,
)
from tests.libvirt.cgroup import default_weight, version
from tests.libvirt.contest import delivered, percent
from tests.libvirt.contestants import Contest


def test_the_specs_six_guests(hypervisor: libvirt.virConnect, tmp_path: Path) -> None:
    (had,) = delivered(hypervisor, tmp_path, SPEC, seconds=10)
    assert percent(had) == pytest.approx(PROMISED, abs=1)


CONTESTS = [
    pytest.param(
        ASLEEP, 1, id="a sleeping guest leaves CPU time to the running guests, in proportion"
    ),
    pytest.param(VCPUS, 1, id="a weight is divided over the vCPUs of a guest"),
    pytest.param(EMULATOR, 1, id="a busy QEMU takes from its own guest alone"),
    pytest.param(WHOLE_CPU, 3, id="a vCPU cannot use more than a CPU"),
    pytest.param(PINNED, 3, id="a pinned guest beside floating ones"),
]
"""Each contest, and by how many percent points the kernel may differ from the model."""


@pytest.mark.parametrize(("contest", "points"), in_turn(CONTESTS))
def test_the_model_predicts_the_kernel(
    hypervisor: libvirt.virConnect, tmp_path: Path, contest: Contest, points: float
) -> None:
    if contest in (WHOLE_CPU, PINNED) and not os.sched_getaffinity(0) >= {0, 1}:
        pytest.skip("it takes two CPUs")
    (had,) = delivered(hypervisor, tmp_path, contest, seconds=10)
    entitlements, floors = contest.entitlements(default_weight()), contest.floors(default_weight())
    assert percent(had) == pytest.approx(percent(entitlements), abs=points)
    # Other programs of the machine take a part of both CPUs.
    of_what_they_had = sum(had.values()) / sum(entitlements.values())
    assert all(had[name] >= 0.95 * floors[name] * of_what_they_had for name in had)


@pytest.mark.skipif(version() == 2, reason="2/3 of a weight of 10 is 68 2/3 shares in cgroup v2")
def test_the_kernel_rounds_light_weights(hypervisor: libvirt.virConnect, tmp_path: Path) -> None:
    if not os.sched_getaffinity(0) >= {0, 1}:
        pytest.skip("it takes two CPUs")
    (had,) = delivered(hypervisor, tmp_path, LIGHT, seconds=8)
    # On CPU 1, 2 of 3 threads and 6 shares against 6; on CPU 0, 3 of 603 shares.
    assert had["light"] / had["rival"] == pytest.approx((1 / 2 + 3 / 603) / (1 / 2), abs=0.04)
