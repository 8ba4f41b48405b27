"""``etc/systemd/cpu-tiers-shares-file``, the program of the timer, beside stand-ins."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Keep = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = Path(__file__).parents[3] / "etc" / "systemd" / "cpu-tiers-shares-file"
STAND_INS = {
    "cpu-tiers": 'cat "$NEW_FILE"',
    "virsh": 'cat "$CAPABILITIES" 2>/dev/null',
    "systemctl": 'echo "$NOVA_COMPUTE_PID"',
    "ps": 'echo "$SECONDS_SINCE_START"',
}
START = 1000
"""Seconds since nova-compute started."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of the file for nova-compute."""
    folder = tmp_path / "provider_config"
    folder.mkdir()
    return folder / "shares.yaml"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The file that the stand-in of ``cpu-tiers`` prints."""
    path = tmp_path / "new.yaml"
    path.write_text("16 CPUs")
    return path


@pytest.fixture
def keep(tmp_path: Path, file: Path, new: Path, capabilities: str) -> Keep:
    """Run the program; return what it printed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NEW_FILE": str(new),
        "CAPABILITIES": capabilities,
        "SHARES_FILE": str(file),
        "SECONDS_SINCE_START": str(START),
    }

    def keep(
        status: int, *arguments: str, pid: str = "7", user: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            ["sh", PROGRAM, *arguments],
            env={**environment, "NOVA_COMPUTE_PID": pid},
            capture_output=True,
            text=True,
            check=False,
            user=user,
        )
        assert result.returncode == status, result.stderr
        return result

    return keep


def test_the_file_has_the_shares_of_the_host(keep: Keep, file: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "cpu-tiers").unlink()  # the command itself
    conf = tmp_path / "nova.conf"
    conf.write_text("[compute]\ncpu_shared_set = 0-9\n")
    result = keep(0, "--config-file", str(conf), pid="0")  # before the start of nova-compute
    assert f"{file} was written" in result.stdout
    assert "total: 1000\n" in file.read_text()  # 10 x 100
    assert file.stat().st_mode & 0o777 == 0o644


def test_nova_compute_must_read_a_new_file(keep: Keep, file: Path, new: Path) -> None:
    assert "was written" in keep(3).stdout
    result = keep(3)  # until the restart
    assert "was written\n" not in result.stdout
    assert "restart nova-compute: it started before" in result.stderr
    before = file.stat().st_mtime - 2 * START
    os.utime(file, (before, before))  # nova-compute has started since
    assert keep(0).stdout == ""
    new.write_text("15 CPUs")
    assert "was written" in keep(3).stdout
    assert file.read_text() == "15 CPUs"
    assert list(file.parent.iterdir()) == [file]


def test_libvirt_without_an_answer(
    keep: Keep, file: Path, tmp_path: Path, capabilities: str
) -> None:
    (tmp_path / "bin" / "cpu-tiers").unlink()  # the command itself
    Path(capabilities).unlink()
    keep(1)
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("mode", [0o775, 0o777])
def test_a_folder_that_further_users_may_write_is_refused(
    keep: Keep, file: Path, mode: int
) -> None:
    file.parent.chmod(mode)
    assert "no other user may write there" in keep(1).stderr
    assert list(file.parent.iterdir()) == []


def test_a_second_file_of_cpu_tiers_is_refused(keep: Keep, file: Path, new: Path) -> None:
    made = '# The CPU shares.\n# Made by "cpu-tiers inventory show -f provider-yaml"\n'
    (file.parent / "cpu-tiers.yaml").write_text(made)
    assert "cpu-tiers.yaml: was made by cpu-tiers, too" in keep(1).stderr
    (file.parent / "cpu-tiers.yaml").unlink()
    file.write_text("of the site")
    new.write_text(made)
    assert "was not made by cpu-tiers" in keep(1).stderr
    assert file.read_text() == "of the site"


def test_a_host_whose_shares_are_in_a_file_of_the_site(
    keep: Keep, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "cpu-tiers").write_text("#!/bin/sh\nexit 3\n")
    assert keep(0).stdout == ""
    assert list(file.parent.iterdir()) == []


def test_a_missing_folder_is_made_and_a_link_is_refused(keep: Keep, file: Path) -> None:
    file.parent.rmdir()
    file.parent.symlink_to(file.parent.parent / "bin", target_is_directory=True)
    assert f"{file.parent}: is a link" in keep(1).stderr
    file.parent.unlink()
    keep(3)
    assert file.parent.stat().st_mode & 0o777 == 0o755


NOBODY = 65534
SWAPS = """\
while :; do
    mv provider_config kept; ln -s "$0" provider_config
    rm provider_config; mv kept provider_config
done 2>/dev/null
"""
"""What the owner of the parent does meanwhile: put a link in the place of the folder."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make folders of another user")
class TestOwnerOfAParent:
    """The folder belongs to root, and its parent to nobody, as /etc/nova may belong to nova."""

    @pytest.fixture
    def tmp_path(self) -> Iterator[Path]:
        """A folder of nobody, to which all users have the way."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            os.chown(folder, NOBODY, NOBODY)
            yield folder

    @pytest.fixture
    def parent(self, tmp_path: Path) -> Path:
        return tmp_path

    def test_the_program_of_root_is_refused(self, keep: Keep, file: Path, parent: Path) -> None:
        secrets = parent / "bin" / "secrets"  # below a folder of root
        secrets.mkdir(mode=0o700)
        command = ["sh", "-c", SWAPS, str(secrets)]
        owner = subprocess.Popen(command, user=NOBODY, cwd=parent, start_new_session=True)
        try:
            for _ in range(20):
                assert f"{parent}: belongs to the user nobody" in keep(1).stderr
        finally:
            os.killpg(owner.pid, signal.SIGKILL)  # with the program that it runs just now
            owner.wait()
        assert list(secrets.iterdir()) == []
        assert secrets.stat().st_mode & 0o777 == 0o700
        assert not file.exists()

    def test_each_remedy_of_the_refusal_works(self, keep: Keep, file: Path, parent: Path) -> None:
        os.chown(file.parent, NOBODY, NOBODY)
        keep(3, user=NOBODY)  # User= of the unit
        assert file.stat().st_uid == NOBODY
        for folder in (parent, file.parent):
            assert f"(chown root {folder})" in keep(1).stderr
            os.chown(folder, 0, 0)
        keep(3)


def test_a_failure_leaves_the_old_file(keep: Keep, file: Path, new: Path) -> None:
    keep(0, pid="0")
    new.unlink()  # so that the stand-in fails
    keep(1)
    assert file.read_text() == "16 CPUs"
    assert list(file.parent.iterdir()) == [file]
