"""What Nova does with a server, by the state, the flavor, the image and what the server holds."""

from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer
from cpu_tiers.tools.plan.movable import (
    COLD_MIGRATION,
    EVACUATION,
    LIVE_MIGRATION,
    Subject,
    homeless,
    stays,
)

YES, NO = True, False

STATES = [  # as the decorators of nova/compute/api.py have them: live, cold, evacuated
    ("ACTIVE", YES, NO, YES),
    ("PAUSED", YES, NO, NO),
    ("SHUTOFF", NO, YES, YES),
    ("ERROR", NO, NO, YES),
    ("SUSPENDED", NO, NO, NO),
    ("RESCUE", NO, NO, NO),
    ("SHELVED", NO, NO, NO),
    ("SOFT_DELETED", NO, NO, NO),
    ("VERIFY_RESIZE", NO, NO, NO),
    ("REVERT_RESIZE", NO, NO, NO),
    ("BUILD", NO, NO, NO),
    ("REBOOT", NO, NO, YES),  # an ACTIVE server with a task
    ("MIGRATING", NO, NO, YES),
]


@pytest.mark.parametrize(("state", "live", "cold", "evacuated"), STATES)
def test_states(state: str, live: bool, cold: bool, evacuated: bool) -> None:
    subject = Subject(SnapshotServer(name="a", state=state))
    assert (stays(subject, is_cold=False) == "") is live
    assert (stays(subject, is_cold=True) == "") is (live or cold)
    assert (homeless(subject) == "") is evacuated


def server(image: Any = None, state: str = "ACTIVE", **specs: str) -> SnapshotServer:
    keys = {key.replace("__", ":"): value for key, value in specs.items()}
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=keys)
    return SnapshotServer(
        name="a", state=state, flavor=flavor, image=Image("i", image) if image else None
    )


@pytest.mark.parametrize(
    ("given", "held", "live", "cold", "evacuated"),
    [
        pytest.param({"hw__tpm_version": "2.0"}, (), NO, YES, NO, id="vTPM"),
        pytest.param({"image": {"hw_tpm_version": "2.0"}}, (), NO, YES, NO, id="vTPM of an image"),
        pytest.param(
            {"hw__tpm_version": "2.0", "hw__tpm_secret_security": "host"},
            *((), YES, YES, NO),
            id="vTPM whose secret the host has: since Nova 33",
        ),
        pytest.param({"hw__mem_encryption": "True"}, (), NO, YES, YES, id="encrypted memory"),
        pytest.param({"hw__mem_encryption": "no"}, (), YES, YES, YES, id="no encrypted memory"),
        pytest.param({"accel__device_profile": "p"}, ("FPGA",), NO, NO, YES, id="accelerator"),
        pytest.param({}, ("FPGA",), NO, NO, NO, id="accelerator of a port"),
        pytest.param({"pci_passthrough__alias": "g:1"}, (), NO, YES, YES, id="PCI device"),
        pytest.param({}, ("PCI_DEVICE",), YES, YES, YES, id="SR-IOV port in Placement"),
        pytest.param({}, ("VGPU",), NO, YES, YES, id="virtual GPU"),
        pytest.param({"hw__pmem": "4GB"}, (), YES, YES, YES, id="persistent memory"),
    ],
)
def test_devices(
    given: Any, held: tuple[str, ...], live: bool, cold: bool, evacuated: bool
) -> None:
    on, off = (Subject(server(state=state, **given), held) for state in ("ACTIVE", "SHUTOFF"))
    assert (stays(on, is_cold=True) == "") is live
    assert (stays(off, is_cold=True) == "") is cold
    assert (homeless(on) == "") is evacuated


def test_a_lock_keeps_no_administrator() -> None:
    assert (
        stays(Subject(SnapshotServer(name="a", state="ACTIVE", is_locked=True)), is_cold=False)
        == ""
    )


def test_the_operators_word_and_a_task_come_first() -> None:
    kept = SnapshotServer(name="a", state="PAUSED", stays="license")
    assert stays(Subject(kept), is_cold=False) == "license"
    busy = SnapshotServer(name="a", state="ACTIVE", task="rebuilding")
    assert stays(Subject(busy), is_cold=False) == (
        "Nova works on it (rebuilding): plan again when Nova has ended its work on the server"
    )
    assert homeless(Subject(busy)) == ""


@pytest.mark.parametrize("table", [LIVE_MIGRATION, COLD_MIGRATION, EVACUATION])
def test_each_row_names_novas_function_and_what_frees(table: Any) -> None:
    for row in table:
        assert row.source.startswith("nova/")
        subject = Subject(SnapshotServer(name="a", state="PAUSED", task="x"))
        assert row.words(subject, "migrates").partition(": ")[2]
