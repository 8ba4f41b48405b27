"""The CPU time of processes, and the steal time of CPUs."""

import os
from pathlib import Path

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.host import load_between, read_load
from cpu_tiers.tools.tiers.domain import BusyProcess
from tests.unit.cgroup.layouts import Layout, stat_line

HZ = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "v2")


def run(layout: Layout, pid: int, cpus: float, policy: int = 0) -> None:
    """Let a process have run for this CPU time in seconds."""
    line = stat_line(pid, "a (job", ticks=round(cpus * HZ), policy=policy)
    layout.write(f"proc/{pid}/stat", line)
    layout.write(f"proc/{pid}/task/{pid}/stat", line)
    layout.write(f"proc/{pid}/status", "Name:\ta (job\nCpus_allowed_list:\t0,2\n")
    layout.write(f"proc/{pid}/cgroup", layout.member("/system.slice/x"))


def steal(layout: Layout, *seconds: float) -> None:
    lines = [
        f"cpu{number} 1 2 3 4 5 6 7 {round(each * HZ)} 9 10" for number, each in enumerate(seconds)
    ]
    layout.write("proc/stat", "\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 1"]))


def test_the_cpus_that_programs_used_in_ten_seconds(layout: Layout) -> None:
    for pid, cpus in ((5, 100.0), (6, 100.0), (7, 100.0)):
        run(layout, pid, cpus)
    steal(layout, 50.0, 0.0)
    files = Files(layout.root)
    before = read_load(files)
    run(layout, 5, 103.0, policy=1)  # 0.3 CPUs
    run(layout, 6, 100.9)  # 0.09 CPUs
    (layout.root / "proc/7/stat").unlink()
    run(layout, 8, 5.0)  # started meanwhile
    steal(layout, 51.5, 0.0)
    load = load_between(files, before, 10.0)
    assert load.steal == {0: pytest.approx(0.15), 1: 0.0}
    assert [(one.pid, one.used) for one in load.busy] == [("8", 0.5), ("5", 0.3)]
    assert load.busy[1] == BusyProcess(
        pid="5",
        name="a (job",
        used=0.3,
        cpus=CpuSet({0, 2}),
        cgroup="/system.slice/x",
        policies={"a (job": 1},
    )
    assert files.faults == []


def test_a_process_id_that_is_used_again(layout: Layout) -> None:
    run(layout, 5, 100.0)
    files = Files(layout.root)
    before = read_load(files)
    # field 22, the start, differs; the new process ran for 2 s
    run(layout, 5, 2.0)
    path = layout.root / "proc/5/stat"
    fields = path.read_text().split(" ")
    fields[22] = "999"  # the name of the process contains a blank
    path.write_text(" ".join(fields))
    assert [one.used for one in load_between(files, before, 10.0).busy] == [0.2]


def family(layout: Layout, pid: int, parent: int, own: float, of_children: float) -> None:
    """Let a process have run, and its children that have ended, in seconds."""
    run(layout, pid, own)
    path = layout.root / f"proc/{pid}/stat"
    fields = path.read_text().split(" ")
    # fields 4, 16 and 17 of proc(5); the name of the process contains a blank
    fields[4], fields[16], fields[17] = str(parent), str(round(of_children * HZ)), "0"
    path.write_text(" ".join(fields))


def test_a_loop_of_processes_that_live_shortly(layout: Layout) -> None:
    family(layout, 5, 1, own=1.0, of_children=100.0)
    files = Files(layout.root)
    before = read_load(files)
    family(layout, 5, 1, own=1.5, of_children=108.0)
    (busy,) = load_between(files, before, 10.0).busy
    assert busy.used == pytest.approx(0.85)


def test_a_child_that_ran_long_before_counts_for_the_interval_only(layout: Layout) -> None:
    family(layout, 5, 1, own=1.0, of_children=0.0)
    family(layout, 6, 5, own=50.0, of_children=0.0)
    files = Files(layout.root)
    before = read_load(files)
    (layout.root / "proc/6/stat").unlink()
    family(layout, 5, 1, own=1.0, of_children=52.0)
    (busy,) = load_between(files, before, 10.0).busy
    assert busy.used == pytest.approx(0.2)
    # A parent that waits for nobody inherits nothing, and its own time counts.
    family(layout, 5, 1, own=4.0, of_children=0.0)
    (busy,) = load_between(files, before, 10.0).busy
    assert busy.used == pytest.approx(0.3)


def test_small_processes_of_a_cgroup_are_summed(layout: Layout) -> None:
    files = Files(layout.root)
    before = read_load(files)
    for pid in range(10, 40):
        run(layout, pid, 0.3)  # 0.03 CPUs each
    (busy,) = load_between(files, before, 10.0).busy
    assert (busy.processes, busy.cgroup) == (30, "/system.slice/x")
    assert busy.used == pytest.approx(0.9)
