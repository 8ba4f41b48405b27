"""The CPU time of the shared vCPU of a mixed guest: two rows of docs/reference/domain.rst."""

import os
from pathlib import Path

import libvirt
import pytest

from tests.draws import in_turn
from tests.libvirt.mixed import Dedicated, windows

ALL_VCPUS = 200
"""A multiplier of 100 for both vCPUs; the rival's one vCPU has the same multiplier."""


@pytest.mark.parametrize(
    ("dedicated", "least", "most"),
    in_turn(
        [
            pytest.param("busy", 0.7, 1.4, id="busy dedicated vCPU: what was promised, 1"),
            pytest.param(
                "idle", 1.5, 2.7, id="idle dedicated vCPU: the rest goes to the shared vCPU, 2"
            ),
        ]
    ),
)
def test_a_weight_by_all_vcpus(
    hypervisor: libvirt.virConnect,
    kvm: bool,
    tmp_path: Path,
    dedicated: Dedicated,
    least: float,
    most: float,
) -> None:
    if not kvm or not os.sched_getaffinity(0) >= {0, 1}:
        pytest.skip("it takes KVM and two CPUs")
    (window,) = windows(hypervisor, tmp_path, weight=ALL_VCPUS, dedicated=dedicated, seconds=5)
    assert least < window.ratio < most, window
