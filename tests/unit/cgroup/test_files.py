"""Files below a root folder, and the errors that are kept as faults."""

from pathlib import Path

import pytest

from cpu_tiers.tools.cgroup.files import Files


def test_a_path_is_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_bytes(b"a\xff\0b")
    # the command line of a process may hold any bytes
    assert Files(tmp_path).read("/proc/stat") == "a\udcff\0b"


def test_folders_are_sorted_and_files_are_none(tmp_path: Path) -> None:
    for name in ("2", "1"):
        (tmp_path / "proc" / name).mkdir(parents=True)
    (tmp_path / "proc" / "cmdline").touch()
    assert Files(tmp_path).folders("/proc") == ["1", "2"]


def test_a_file_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpu_tiers.tools.cgroup.files.MAX_BYTES", 4)
    (tmp_path / "cmdline").write_bytes(b"1234")
    assert Files(tmp_path).read("/cmdline") == "1234"
    (tmp_path / "cmdline").write_bytes(b"12345")
    with pytest.raises(ValueError, match="longer than 4 bytes"):
        Files(tmp_path).read("/cmdline")


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(FileNotFoundError(2, "No such file", "/proc/7"), id="the process ended"),
        pytest.param(
            ProcessLookupError(3, "No such process"), id="the process ended during the read"
        ),
        pytest.param(NotADirectoryError(20, "Not a directory"), id="the folder is gone"),
    ],
)
def test_a_process_that_ended_is_no_fault(error: OSError) -> None:
    files = Files()
    with files.noted("/proc/7"):
        fail(error)
    assert files.faults == []


@pytest.mark.parametrize(
    ("error", "where", "given"),
    [
        pytest.param(
            PermissionError(13, "Permission denied", "/proc/7/cgroup"),
            "/proc/7/cgroup",
            "cannot be read (Permission denied)",
            id="the file of the error, not the folder of the block",
        ),
        pytest.param(
            ValueError("many is no number"),
            "/proc/7",
            "cannot be read (many is no number)",
            id="text",
        ),
        pytest.param(OSError("broken"), "/proc/7", "cannot be read (broken)", id="no errno"),
    ],
)
def test_every_error_but_a_vanished_file_is_a_fault(
    error: Exception, where: str, given: str
) -> None:
    files = Files()
    with files.noted("/proc/7"):
        fail(error)
    (fault,) = files.faults
    assert (fault.where, fault.given) == (where, given)
    assert fault.allowed == "run the command as root on the compute host"


def test_errors_of_our_own_are_raised() -> None:
    files = Files()
    with pytest.raises(KeyError), files.noted("/proc/7"):
        raise KeyError("a bug")
