"""An output file is written as a whole, or stays as it was."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpu_tiers.cli.output_file import write_output


@contextmanager
def files_end_after(size: int) -> Iterator[None]:
    """Have the kernel refuse to write more bytes to a file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_old_file_stays_if_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with files_end_after(4), pytest.raises(OSError, match="File too large"):
        write_output(str(path), b"a new plan")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("plan.json", b"old")
    ]


def test_the_new_file_has_the_mode_and_the_place_of_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    path, link = tmp_path / "metrics" / "host.prom", tmp_path / "link.prom"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_output(str(link), b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [path]


def test_a_device_is_written_directly() -> None:
    with pytest.raises(OSError, match="No space left on device"):
        write_output("/dev/full", b"new")
    write_output("/dev/null", b"new")


def test_a_private_file_is_only_for_its_user(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for _ in range(2):
        write_output(str(path), b"new", private=True)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
