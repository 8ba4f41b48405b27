"""The configuration files of a running nova-compute."""

from pathlib import Path

import pytest

from cpu_tiers.cgroup.files import Files
from cpu_tiers.cgroup.nova_compute import ConfigPaths, find_config
from cpu_tiers.errors import InvalidInput


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine without nova-compute; this process has the file system ``mnt:[1]``."""
    proc = tmp_path / "proc"
    run(proc, "self", "cpu-tiers")
    run(proc, 5, "/usr/bin/python3", "/usr/bin/privsep-helper", "--config-file", "/etc/no.conf")
    run(proc, 6, "vim", "x", "nova-compute")
    return proc


def run(proc: Path, pid: int | str, *command: str, mount: int = 1) -> None:
    (proc / f"{pid}/ns").mkdir(parents=True)
    (proc / f"{pid}/cmdline").write_text("\0".join(command) + "\0")
    (proc / f"{pid}/ns/mnt").symlink_to(f"mnt:[{mount}]")
    (proc / f"{pid}/cwd").symlink_to("/srv")


def found(proc: Path) -> ConfigPaths | None:
    return find_config(Files(proc.parent))


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
    assert found(proc) == (files, folders)


def test_a_container(proc: Path) -> None:
    run(proc, 7, "nova-compute", mount=2)
    etc = proc / "7/root/etc/nova"
    (etc / "nova.conf.d").mkdir(parents=True)
    (etc / "nova.conf").touch()
    assert found(proc) == (
        ("/proc/7/root/etc/nova/nova.conf",),
        ("/proc/7/root/etc/nova/nova.conf.d",),
    )
    # the nova-compute of this file system goes first
    run(proc, 8, "nova-compute", "--config-file", "/a.conf")
    assert found(proc) == (("/a.conf",), ())


def test_several(proc: Path) -> None:
    for pid in (7, 8):
        run(proc, pid, "nova-compute", "--config-file", "/a.conf")
    assert found(proc) == (("/a.conf",), ())
    run(proc, 9, "nova-compute", "--config-file", "/b.conf")
    with pytest.raises(InvalidInput, match="2 processes run, with different configuration files"):
        found(proc)
