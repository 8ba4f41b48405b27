"""An output file is written as a whole, or stays as it was; links of others are not followed."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.frame.safe_files import MAX_BYTES, check_owner, write_output

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs files of another user")


@contextmanager
def files_end_after(size: int) -> Iterator[None]:
    """Have the kernel refuse to write more bytes to a file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_old_file_stays_if_the_new_file_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with files_end_after(4), pytest.raises(InvalidInput, match="File too large"):
        write_output(str(path), b"a new plan")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("plan.json", b"old")
    ]


KILLED = """
import os, signal, sys
from cpu_tiers.tools.frame.safe_files import write_output
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
write_output(sys.argv[1], b"half")
"""


def test_the_file_of_a_killed_command_is_removed_by_the_next(tmp_path: Path) -> None:
    path, site = tmp_path / "host.prom", tmp_path / ".cpu-tiers-of-the-site"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (remains,) = tmp_path.iterdir()
    write_output(str(path), b"new")
    assert remains.exists()  # another command may just have made it
    old = time.time() - 60
    os.utime(remains, (old, old))
    with remains.open("rb") as locked:  # as by a command that still writes
        fcntl.flock(locked, fcntl.LOCK_EX)
        write_output(str(path), b"newer")
        assert remains.exists()
    site.touch()
    write_output(str(path), b"newest")
    assert sorted(tmp_path.iterdir()) == [site, path]
    assert path.read_bytes() == b"newest"


@pytest.mark.parametrize("name", ["", "/", "."])
def test_a_path_without_a_name_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_output(name, b"new")


def test_a_fifo_without_a_reader_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(InvalidInput, match="No such device or address"):
        write_output(str(path), b"new")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_output(str(path), b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.touch()
    for folder in (missing, file):
        with pytest.raises(InvalidInput, match=rf"written \(there is no folder {folder}\)"):
            write_output(str(folder / "out"), b"new")


def test_the_new_file_has_the_mode_of_the_old_file_and_takes_the_place_of_a_link(
    tmp_path: Path,
) -> None:
    path, link = tmp_path / "host.prom", tmp_path / "link.prom"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_output(str(path), b"new")
    write_output(str(link), b"newer")
    assert not link.is_symlink()
    assert (path.read_bytes(), link.read_bytes()) == (b"new", b"newer")
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 2


def test_a_device_is_written_directly() -> None:
    with pytest.raises(InvalidInput, match="No space left on device"):
        write_output("/dev/full", b"new")
    write_output("/dev/null", b"new")


def test_a_private_file_is_only_for_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for _ in range(2):
        write_output(str(path), b"new", private=True)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)


def test_a_folder_behind_own_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("c")
    (tmp_path / "c").symlink_to(tmp_path / "a")
    write_output(str(tmp_path / "b" / ".." / "b" / "x"), b"new")
    assert (tmp_path / "a" / "x").read_bytes() == b"new"
    (tmp_path / "c").unlink()
    (tmp_path / "c").symlink_to("b")
    with pytest.raises(InvalidInput, match="too many links"):
        write_output(str(tmp_path / "b" / "x"), b"new")


@pytest.mark.parametrize("mode", [">", ">>"])
def test_standard_output_that_a_shell_has_opened(tmp_path: Path, mode: str) -> None:
    (tmp_path / "out").write_text("old ")
    code = (
        "from cpu_tiers.tools.frame.safe_files import write_output as w; w('/dev/stdout', b'new')"
    )
    subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{code}" {mode} {tmp_path}/out'], check=True
    )
    assert (tmp_path / "out").read_text() == ("old new" if mode == ">>" else "new")
    assert Path("/dev/stdout").is_symlink()


def test_a_pipe_of_the_user_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    write_output(str(tmp_path / "fifo"), b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)


@pytest.fixture
def of_nobody(tmp_path: Path) -> Path:
    folder = tmp_path / "nobody"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


def give(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@as_root
@pytest.mark.parametrize("is_shared", [False, True], ids=["own folder", "shared folder"])
@pytest.mark.parametrize("kind", ["link", "link to a device", "fifo", "file", "no target"])
@pytest.mark.parametrize("is_private", [False, True])
def test_a_file_of_the_user_nobody_in_place_of_the_output_is_replaced(
    tmp_path: Path, of_nobody: Path, kind: str, is_shared: bool, is_private: bool
) -> None:
    if is_shared:
        os.chown(of_nobody, 0, 0)
        of_nobody.chmod(0o1777)
    target, path = tmp_path / "precious", of_nobody / "out.prom"
    target.write_text("precious")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("old")
        path.chmod(0o666)
    else:
        where = {"link": target, "link to a device": Path("/dev/full")}
        path.symlink_to(where.get(kind, tmp_path / "new"))
    give(path)
    write_output(str(path), b"new", private=is_private)
    assert target.read_text() == "precious"
    assert not (tmp_path / "new").exists()
    assert path.is_file()
    assert not path.is_symlink()
    status = path.stat()
    assert (path.read_bytes(), status.st_uid) == (b"new", 0)
    assert status.st_mode & 0o002 == 0
    assert not is_private or status.st_mode & 0o777 == 0o600


@as_root
def test_a_link_of_the_user_nobody_on_the_way_is_refused(tmp_path: Path, of_nobody: Path) -> None:
    (tmp_path / "cron.d").mkdir()
    link = of_nobody / "metrics"
    link.symlink_to(tmp_path / "cron.d")
    give(link)
    with pytest.raises(InvalidInput, match="user 65534 made a link on the way to the file"):
        write_output(str(link / "x.prom"), b"new")
    assert list((tmp_path / "cron.d").iterdir()) == []


@as_root
def test_a_command_of_the_user_nobody_writes_as_nobody(of_nobody: Path) -> None:
    # The folders of pytest, of which there is one more in a process of several.
    own = [folder for folder in of_nobody.parents if folder.name.startswith(("pytest", "popen"))]
    for folder in (*own, of_nobody.parent):
        folder.chmod(0o755)
    if not (child := os.fork()):
        os.setresuid(NOBODY, NOBODY, NOBODY)
        status = 1
        try:
            write_output(str(of_nobody / "out"), b"new")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert (of_nobody / "out").read_text() == "new"


def test_files_of_root_and_of_the_service_are_read(tmp_path: Path) -> None:
    conf, folder = tmp_path / "nova.conf", tmp_path / "conf.d"
    conf.touch()
    folder.mkdir()
    (folder / "a.conf").symlink_to(conf)
    for path in (conf, folder):
        check_owner(str(path), {os.geteuid()})


@as_root
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("file of nobody", "user 65534 owns it"),
        ("folder of nobody", "user 65534 owns it"),
        ("link of nobody", "user 65534 owns it"),
        ("in a folder", "user 65534 owns it"),
        ("for everybody", "every user may write it"),
        ("fifo", "no regular file"),
        ("too long", "no regular file of at most"),
        ("missing", "No such file or directory"),
    ],
)
def test_a_file_that_other_users_could_have_written_is_not_read(
    tmp_path: Path, of_nobody: Path, kind: str, message: str
) -> None:
    path = checked = tmp_path / "nova.conf"
    if kind == "folder of nobody":
        path = checked = of_nobody / "nova.conf"
    if kind == "in a folder":
        checked = tmp_path / "conf.d"
        checked.mkdir()
        path = checked / "b.conf"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind != "missing":
        path.touch()
    if kind in {"file of nobody", "in a folder"}:
        give(path)
    elif kind == "link of nobody":
        checked = tmp_path / "link"
        checked.symlink_to(path)
        give(checked)
    elif kind == "for everybody":
        path.chmod(0o666)
    elif kind == "too long":
        os.truncate(path, MAX_BYTES + 1)
    with pytest.raises(InvalidInput, match=message):
        check_owner(str(checked), {0})
