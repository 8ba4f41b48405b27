"""A measurement over an interval of no length, on recorded files."""

from pathlib import Path

import pytest

from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.host import measure, read_host
from cpu_tiers.tools.tiers.domain import CpuTime
from tests.unit.cgroup.layouts import Layout, guest, stat_line

RUNS, STOPS = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"


def test_a_stopped_guest_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path, "v1")
    for uuid in (RUNS, STOPS):
        layout.guest(uuid, 100)
    layout.write("proc/1020/task/1020/stat", stat_line(1020, "qemu", state="T"))

    def schedstat(text: str) -> None:
        for thread in ("1010/task/1011", "1020/task/1021"):
            layout.write(f"proc/{thread}/schedstat", text)

    schedstat("1000000000 0 1")
    sleep = "cpu_tiers.tools.cgroup.host.time.sleep"
    monkeypatch.setattr(sleep, lambda _: schedstat("1500000000 2000000000 9"))
    files = Files(tmp_path)
    cgroups = read_host([guest(RUNS), guest(STOPS)], files)
    assert {uuid: one.stopped for uuid, one in cgroups.guests.items()} == {
        RUNS: False,
        STOPS: True,
    }
    measured = measure(cgroups, 10.0, files)
    assert measured.spent == {RUNS: (CpuTime(0.5, 2.0, 8),)}
    assert measured.faults == ()


STATUS = "Name:\tCPU 0/KVM\nState:\t{}\nCpus_allowed_list:\t0-1\n"
STATUS += "voluntary_ctxt_switches:\t{}\n"


@pytest.mark.parametrize(
    ("early", "late", "waited"),
    [
        pytest.param(("R (running)", 7), ("R (running)", 7), 10.0, id="it waited all the time"),
        pytest.param(("S (sleeping)", 7), ("R (running)", 7), 0.0, id="it has just woken up"),
        pytest.param(("R (running)", 7), ("S (sleeping)", 8), 0.0, id="it went to sleep"),
        pytest.param(("R (running)", 7), ("R (running)", 8), 0.0, id="it slept between"),
        pytest.param(("S (sleeping)", 7), ("S (sleeping)", 7), 0.0, id="it slept all the time"),
    ],
)
def test_a_vcpu_that_gets_nothing_at_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    early: tuple[str, int],
    late: tuple[str, int],
    waited: float,
) -> None:
    """The kernel counts a wait at its end, so its counters do not change."""
    layout = Layout(tmp_path, "v1")
    layout.guest(RUNS, 100)
    thread = "proc/1010/task/1011"
    layout.write(f"{thread}/schedstat", "1000000000 0 1")
    layout.write(f"{thread}/status", STATUS.format(*early))

    def pass_by(_: float) -> None:
        layout.write(f"{thread}/status", STATUS.format(*late))

    seconds = iter((0.0, 10.0, 10.0))
    monkeypatch.setattr("cpu_tiers.tools.cgroup.host.time.sleep", pass_by)
    monkeypatch.setattr("cpu_tiers.tools.cgroup.host.time.monotonic", lambda: next(seconds))
    files = Files(tmp_path)
    measured = measure(read_host([guest(RUNS)], files), 10.0, files)
    assert measured.spent == {RUNS: (CpuTime(0.0, waited, 0),)}
    assert measured.faults == ()
