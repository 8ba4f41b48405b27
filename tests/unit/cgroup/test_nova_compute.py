"""The configuration files of a running nova-compute, and of processes that only look like one."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.nova_compute import ConfigPaths, find_config

NOBODY = 65534
PYTHON = shutil.which("python3", path="/usr/bin") or ""
"""A Python that every user may run."""


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine without nova-compute; this process has the file system ``mnt:[1]``."""
    proc = tmp_path / "proc"
    run(proc, "self", "cpu-tiers")
    run(proc, 5, "/usr/bin/python3", "/usr/bin/privsep-helper", "--config-file", "/etc/no.conf")
    run(proc, 6, "vim", "x", "nova-compute")
    return proc


def run(
    proc: Path,
    pid: int | str,
    *command: str,
    mount: int = 1,
    users: str = "0 0 0 0",
    program: str = "/usr/bin/python3.11",
    cgroup: str = "0::/user.slice/user-1000.slice/session-1.scope",
) -> None:
    (proc / f"{pid}/ns").mkdir(parents=True)
    (proc / f"{pid}/cmdline").write_text("\0".join(command) + "\0")
    (proc / f"{pid}/ns/mnt").symlink_to(f"mnt:[{mount}]")
    (proc / f"{pid}/cwd").symlink_to("/srv")
    (proc / f"{pid}/exe").symlink_to(program)
    (proc / f"{pid}/status").write_text(f"Name:\tx\nUid:\t{users}\n".replace(" ", "\t"))
    (proc / f"{pid}/cgroup").write_text(f"4:memory:/\n{cgroup}\n")


def found(proc: Path) -> ConfigPaths | None:
    return find_config(Files(proc.parent))[0]


@pytest.mark.parametrize(
    ("arguments", "files", "folders"),
    [
        pytest.param([], (), (), id="the default paths"),
        pytest.param(
            ["--config-file", "/a.conf", "--debug", "--config-file=b.conf"],
            ("/a.conf", "/srv/b.conf"),
            (),
            id="two files, in this order",
        ),
        pytest.param(["--config-dir", "/d"], (), ("/d",), id="a folder"),
    ],
)
@pytest.mark.parametrize(
    "python", [["/usr/bin/python3.11", "/usr/bin/nova-compute"], ["nova-compute"]]
)
def test_the_arguments(
    proc: Path,
    python: list[str],
    arguments: list[str],
    files: tuple[str, ...],
    folders: tuple[str, ...],
) -> None:
    assert found(proc) is None
    run(proc, 7, *python, *arguments)
    assert found(proc) == (files, folders, 0)


def test_a_container_is_named_and_not_read(proc: Path) -> None:
    run(proc, 7, "nova-compute", mount=2)
    assert find_config(Files(proc.parent)) == (None, ("7",))


UNIT = "0::/system.slice/nova-compute.service"
LIKE_A_UNIT = "0::/user.slice/user-1000.slice/user@1000.service/system.slice/nova-compute.service"


@pytest.mark.parametrize(
    ("users", "program", "cgroup", "owner"),
    [
        pytest.param("0 0 0 0", "/usr/bin/python3.11", "0::/", 0, id="of root"),
        pytest.param("0 0 0 0", "/opt/x/bin/python3 (deleted)", "0::/", 0, id="after an upgrade"),
        pytest.param("0 0 0 0", "/usr/bin/sudo", "0::/", None, id="a setuid program that is root"),
        pytest.param("1000 0 0 0", "/usr/bin/python3", "0::/", None, id="became root"),
        pytest.param("1000 1000 1000 1000", "/usr/bin/python3", "0::/", None, id="of a user"),
        pytest.param("7 7 7 7", "/usr/bin/python3", UNIT, 7, id="the unit"),
        pytest.param("7 7 7 7", "/usr/bin/python3", LIKE_A_UNIT, None, id="a user's unit"),
        pytest.param(
            "7 7 7 7", "/usr/bin/python3", "0::/system.slice/cron.service", None, id="a cron job"
        ),
        pytest.param(
            "7 7 7 7",
            "/usr/bin/python3",
            "1:name=systemd:/system.slice/system-devstack.slice/devstack@n-cpu.service",
            7,
            id="DevStack, cgroup v1",
        ),
    ],
)
def test_the_owner_of_a_process_decides_whether_the_process_is_nova_compute(
    proc: Path, users: str, program: str, cgroup: str, owner: int | None
) -> None:
    run(
        proc, 7, "python3", "/x/nova-compute", "--config-file", "/a.conf",
        users=users, program=program, cgroup=cgroup,
    )  # fmt: skip
    expected = None if owner is None else (("/a.conf",), (), owner)
    assert find_config(Files(proc.parent)) == (expected, () if expected else ("7",))


@contextmanager
def process(*command: str, user: int) -> Iterator[str]:
    with subprocess.Popen(command, user=user, group=user, extra_groups=[]) as child:
        try:
            while "nova-compute" not in Path(f"/proc/{child.pid}/cmdline").read_text():
                time.sleep(0.01)
            yield str(child.pid)
        finally:
            child.kill()


@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON, reason="starts a Python of another user")
@pytest.mark.parametrize(("user", "is_service"), [(NOBODY, False), (0, True)])
def test_a_process_of_the_user_nobody_chooses_no_configuration(
    tmp_path: Path, user: int, is_service: bool
) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    script = tmp_path / "nova-compute"
    script.write_text("import time; time.sleep(60)")
    conf = str(tmp_path / "fifo")
    with process(PYTHON, str(script), "--config-file", conf, user=user) as pid:
        paths, strangers = find_config(Files())
    assert (pid in strangers) is not is_service
    assert (paths is not None and paths.files == (conf,)) is is_service


def test_several(proc: Path) -> None:
    for pid in (7, 8):
        run(proc, pid, "nova-compute", "--config-file", "/a.conf")
    assert found(proc) == (("/a.conf",), (), 0)
    run(proc, 9, "nova-compute", "--config-file", "/b.conf")
    with pytest.raises(InvalidInput, match="2 processes run, with different configuration files"):
        found(proc)
