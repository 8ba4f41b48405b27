"""The units of ``etc/systemd`` in a real systemd, beside stubs of libvirt's daemons and of Nova's.

The systemd is a manager of a user, root. It has file systems of its own, in which the programs
of the units are stubs, except ``cpu-tiers-shares-file``. It also has a control group of its own:
a systemd moves all processes that are below the control group in which it starts.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "etc" / "systemd"
ROLE = ROOT / "contrib" / "ansible" / "roles" / "cpu_tiers_stock_nova" / "tasks" / "main.yml"
CONTROL_GROUPS = Path("/sys/fs/cgroup")
MANAGER = Path("/lib/systemd/systemd")
OF_A_HOST = ("cpu-tiers-audit", "cpu-tiers-shares-file", "cpu-tiers-watch")
NAMES_OF_NOVA_COMPUTE = ("nova-compute", "openstack-nova-compute")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not MANAGER.exists() or not shutil.which("unshare"),
    reason="needs root and systemd (Debian packages: bindep.txt, profile package)",
)

# Version 1 of control groups has a folder for each hierarchy, version 2 is one hierarchy.
CONTROL_GROUP = """\
set -eu
cd /sys/fs/cgroup
if [ -e cgroup.procs ]; then folders=.; else folders="systemd unified"; fi
for folder in $folders; do
    [ ! -d $folder ] || { mkdir $folder/units-$$; echo $$ >$folder/units-$$/cgroup.procs; }
done
cd /
exec unshare --mount sh -c "$FILE_SYSTEMS"
"""
FILE_SYSTEMS = f"""\
set -eu
mount -t tmpfs units /run && mount -t tmpfs units /opt && mount -t tmpfs units /usr/local
# What the first systemd of a machine makes.
mkdir -p /run/systemd/system /run/systemd/inaccessible/dir
mkdir -p /run/manager /opt/cpu-tiers/bin /usr/local/bin /usr/local/sbin
for program in cpu-tiers virsh systemctl; do
    printf '#!/bin/sh\\necho 0\\n' >/opt/cpu-tiers/bin/$program
    chmod +x /opt/cpu-tiers/bin/$program
done
cp /opt/cpu-tiers/bin/cpu-tiers /usr/local/bin/
cp {UNITS}/cpu-tiers-shares-file /usr/local/sbin/
exec {MANAGER} --user --unit=basic.target
"""
DAEMON = "[Unit]\n{}\n[Service]\nExecStart=/bin/sleep infinity\n"


class Host:
    """A systemd with the units of cpu-tiers."""

    def __init__(self, folder: Path) -> None:
        self.units = folder / "systemd" / "user"
        shutil.copytree(UNITS, self.units)
        # The line of libvirt's own unit.
        self.add("virtqemud", DAEMON.format("Conflicts=libvirtd.service"))
        for name in NAMES_OF_NOVA_COMPUTE:
            self.add(name, DAEMON.format(""))
        self._environment = {
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": "/run/manager",
            "XDG_CONFIG_HOME": str(folder),
            "FILE_SYSTEMS": FILE_SYSTEMS,
        }
        self._manager = subprocess.Popen(
            ["sh", "-c", CONTROL_GROUP],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def add(self, name: str, text: str) -> None:
        (self.units / f"{name}.service").write_text(text)

    def drop_in(self, name: str, text: str) -> None:
        folder = self.units / f"{name}.service.d"
        folder.mkdir(exist_ok=True)
        (folder / "paths.conf").write_text(text)
        self.ask("systemctl --user daemon-reload")

    def ask(self, command: str) -> tuple[int, str]:
        """Return the status and the output of a command beside the systemd."""
        enter = ["nsenter", "--mount", "--target", str(self._manager.pid)]
        ran = subprocess.run(
            [*enter, "sh", "-c", command],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        return ran.returncode, ran.stdout.strip()

    def start(self, *names: str) -> int:
        units = " ".join(f"{name}.service" for name in names)
        return self.ask(f"systemctl --user start {units}")[0]

    def state(self, name: str) -> str:
        return self.ask(f"systemctl --user is-active {name}.service")[1]

    def wait(self) -> None:
        for _ in range(100):
            if self.ask("systemctl --user list-units")[0] == 0:
                return
            time.sleep(0.1)
        raise TimeoutError("systemd did not start")

    def stop(self) -> None:
        self.ask("systemctl --user stop '*.service'")
        self._manager.terminate()
        self._manager.wait(timeout=30)
        for folder in CONTROL_GROUPS.glob(f"**/units-{self._manager.pid}"):
            for path, _, _ in os.walk(folder, topdown=False):
                Path(path).rmdir()


@pytest.fixture
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as name:
        host = Host(Path(name))
        try:
            host.wait()
            yield host
        finally:
            host.stop()


def test_no_process_of_the_machine_is_moved(host: Host) -> None:
    before = Path("/proc/self/cgroup").read_text()
    host.add("sleep", DAEMON.format(""))
    host.ask("systemctl --user daemon-reload")
    assert host.start("sleep") == 0
    assert Path("/proc/self/cgroup").read_text() == before


def test_no_unit_has_a_fault(host: Host) -> None:
    files = " ".join(map(str, sorted([*UNITS.glob("*.service"), *UNITS.glob("*.timer")])))
    assert host.ask(f"systemd-analyze verify --man=no {files}") == (0, "")


@pytest.mark.parametrize("daemon", ["virtqemud", "libvirtd"])
@pytest.mark.parametrize("other", ["installed", "masked", "absent"])
def test_a_unit_starts_and_ends_no_daemon_of_libvirt(host: Host, daemon: str, other: str) -> None:
    """Each daemon stays alone, also where the package of the other daemon is installed."""
    another = {"virtqemud": "libvirtd", "libvirtd": "virtqemud"}[daemon]
    host.add("libvirtd", DAEMON.format(""))
    if other != "installed":
        path = host.units / f"{another}.service"
        path.unlink(missing_ok=True)
        if other == "masked":
            path.symlink_to("/dev/null")
    host.ask("systemctl --user daemon-reload")
    assert host.start(daemon) == 0
    for unit in OF_A_HOST:
        host.drop_in(unit, "[Service]\nExecStart=\nExecStart=/bin/true\n")
        assert host.start(unit) == 0
        assert (host.state(daemon), host.state(another)) == ("active", "inactive")


def test_a_unit_starts_after_each_daemon_that_a_host_may_have(host: Host) -> None:
    for unit in OF_A_HOST:
        _, orders = host.ask(f"systemctl --user show -p After --value {unit}.service")
        wanted = {"libvirtd.service", "virtqemud.service"}
        if unit != "cpu-tiers-shares-file":
            wanted |= {f"{name}.service" for name in NAMES_OF_NOVA_COMPUTE}
        assert wanted <= set(orders.split())


@pytest.mark.parametrize("name", NAMES_OF_NOVA_COMPUTE)
def test_the_file_is_written_before_nova_compute_starts(host: Host, name: str) -> None:
    moved_file(host, "/opt/nova")
    host.ask("mkdir /opt/nova; systemctl --user enable cpu-tiers-shares-file.service")
    # Nova starts only if the file is there.
    host.add(
        name, "[Service]\nExecStartPre=/bin/test -s /opt/nova/shares.yaml\nExecStart=/bin/cat\n"
    )
    host.ask("systemctl --user daemon-reload")
    assert host.start(name) == 0


def moved_file(host: Host, folder: str) -> None:
    """Move the file, by the lines of the Ansible role."""
    text = ROLE.read_text().partition("content: |\n")[2].partition("    mode:")[0]
    lines = (line.strip() for line in text.splitlines())
    values = {
        "{{ cpu_tiers_venv }}": "/opt/cpu-tiers",
        "{{ cpu_tiers_shares_file }}": f"{folder}/shares.yaml",
        "{{ cpu_tiers_shares_file | dirname }}": folder,
        "{{ cpu_tiers_compute_service }}": "nova-compute",
    }
    drop_in = "\n".join(lines)
    for variable, value in values.items():
        drop_in = drop_in.replace(variable, value)
    assert "{{" not in drop_in
    host.drop_in("cpu-tiers-shares-file", drop_in + "\n")


def test_a_moved_file_moves_what_the_unit_may_write(host: Host) -> None:
    moved_file(host, "/opt/nova")
    shown = host.ask(
        "systemctl --user show -p ReadWritePaths --value cpu-tiers-shares-file.service"
    )
    assert shown == (0, "-/opt/nova")
    host.ask("mkdir /opt/nova")
    assert host.start("cpu-tiers-shares-file") == 0
    assert host.ask("cat /opt/nova/shares.yaml") == (0, "0")


def test_a_missing_folder_is_named(host: Host) -> None:
    """Nova need not be installed yet, or have no files of providers."""
    moved_file(host, "/opt/nova/provider_config")
    host.ask("mkdir /opt/nova")
    log = "[Service]\nStandardError=file:/run/error\n"
    (host.units / "cpu-tiers-shares-file.service.d" / "log.conf").write_text(log)
    host.ask("systemctl --user daemon-reload")
    assert host.start("cpu-tiers-shares-file") == 1
    _, error = host.ask("cat /run/error")
    assert "/opt/nova/provider_config: make the folder once" in error
