from pathlib import Path

from cpu_tiers.tools.cgroup.processes import YOUNG_SECONDS, Newcomers
from tests.unit.cgroup.layouts import CountingFiles

FIRST, SECOND = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2))


def run(root: Path, pid: int, *arguments: str) -> Path:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cmdline").write_text("".join(f"{argument}\0" for argument in arguments))
    return folder


def test_guests_that_appear_and_vanish(tmp_path: Path) -> None:
    files, newcomers = CountingFiles(tmp_path), Newcomers()
    run(tmp_path, 1, "/sbin/init")
    first = run(tmp_path, 20, "qemu", "-uuid", FIRST.upper())
    assert newcomers.uuids(files, 0) == {FIRST}
    run(tmp_path, 30, "libvirtd")  # forks, and becomes QEMU later
    assert newcomers.uuids(files, 10) == {FIRST}
    run(tmp_path, 30, "qemu", "-uuid", SECOND)
    assert newcomers.uuids(files, 20) == {FIRST, SECOND}
    first.rename(tmp_path / "ended")
    assert newcomers.uuids(files, 30) == {SECOND}
    assert files.faults == []


def test_an_old_process_is_not_read_again(tmp_path: Path) -> None:
    files, newcomers = CountingFiles(tmp_path), Newcomers()
    run(tmp_path, 1, "/sbin/init")
    run(tmp_path, 20, "qemu", "-uuid", FIRST)
    for now in (0.0, YOUNG_SECONDS, YOUNG_SECONDS + 1, 1e6):
        assert newcomers.uuids(files, now) == {FIRST}
    assert files.reads == {"/proc/1/cmdline": 2, "/proc/20/cmdline": 1}
