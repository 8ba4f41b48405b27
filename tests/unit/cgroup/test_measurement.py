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
