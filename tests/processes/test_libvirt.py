"""A server on a real libvirt and KVM: from the API to the threads in the kernel."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from lxml import etree

from cpu_tiers.model.names import (
    DISK_GB,
    MEMORY_MB,
    NUMA_SERVER,
    PCPU,
    VCPU,
    VCPU_SHARES,
)
from tests import draws
from tests.libvirt.cgroup import cpu_cgroups
from tests.libvirt.embedded import configure
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.control import BIN
from tests.processes.daemons import kill

HOST = "real"

WATCHDOG = """
    from lxml.builder import E

    def elements(guest):
        action = guest.flavor.extra_specs.get("our:watchdog")
        return [E.devices(E.watchdog(model="i6300esb", action=action))] if action else []
"""
"""A plugin of another distribution, for the guests of flavors with the extra spec."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of libvirt, with a short name, because sockets are in the folder."""
    return tmp_path_factory.mktemp("embed")


@pytest.fixture(scope="module")
def conf(cloud: Cloud, folder: Path) -> Sections:
    """The options of a host with CPU 0 for shared vCPUs and CPU 1 for dedicated vCPUs.

    libvirt runs inside the process of nova-compute, with its files in a folder and guests as root.
    """
    privsep = f"{BIN / 'privsep-helper'} --config-file {cloud.home(HOST) / 'nova.conf'}"
    return {
        "DEFAULT": {"manager_shutdown_timeout": 1},  # Nova waits in vain for its libvirt thread
        "libvirt": {
            "connection_uri": configure(folder),
            "virt_type": "kvm" if Path("/dev/kvm").exists() else "qemu",
            "cpu_mode": "none",
        },
        "compute": {
            "cpu_shared_set": 0,
            "cpu_dedicated_set": 1,
            "enable_numa_reporting_to_placement": True,
        },
        "nova_sys_admin": {"helper_command": privsep},
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Python with a distribution that has a plugin for domain XML."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "our_watchdog-1.0.dist-info"
    metadata.mkdir()
    (site / "our_watchdog.py").write_text(dedent(WATCHDOG))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: our_watchdog\nVersion: 1.0\n")
    entry = "[cpu_tiers.domain_xml]\nwatchdog = our_watchdog:elements\n"
    (metadata / "entry_points.txt").write_text(entry)
    return site


@pytest.fixture(scope="module")
def root(cloud: Cloud, folder: Path, conf: Sections, site: Path) -> Iterator[Path]:
    """The folder of libvirt, on a host that runs, and whose Python has the plugin.

    libvirt would give the library of the clock to QEMU.
    """
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    cloud.start_compute(
        HOST,
        conf,
        command=(str(BIN / "cpu-tiers-nova-compute"), "--config-file"),
        env={"PYTHONPATH": path, "LD_PRELOAD": ""},
    )
    yield folder
    kill([cloud.computes[HOST]])
    for pid in guests(folder):  # Nova has deleted them, if it could
        os.kill(pid, signal.SIGKILL)


def guests(root: Path) -> list[int]:
    """Return the process ids of the guests of a libvirt."""
    return [int(path.read_text()) for path in root.glob("run/qemu/instance-*.pid")]


def vcpus(pid: int) -> dict[int, Path]:
    """Return the folder in /proc of each vCPU's thread."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    names = {path: re.match(r"CPU (\d+)/", (path / "comm").read_text()) for path in threads}
    return {int(name[1]): path for path, name in names.items() if name}


def cpus(thread: Path) -> str:
    """Return the CPUs on which the kernel lets a thread run."""
    fields = dict(line.split(":\t", 1) for line in (thread / "status").read_text().splitlines())
    return fields["Cpus_allowed_list"]


def weight(thread: Path) -> int:
    """Return the weight of the guest to which a thread belongs."""
    (group,) = (cgroup for cgroup in cpu_cgroups(int(thread.name)) if "instance" in cgroup.name)
    (path,) = (group / name for name in ("cpu.shares", "cpu.weight") if (group / name).exists())
    return int(path.read_text())


def test_a_mixed_server_of_a_tier(cloud: Cloud, root: Path) -> None:
    """One of two vCPUs is shared: the server claims 50 x 1 shares, and the weight is 50 x 2."""
    flavor = {
        "hw:numa_nodes": "1",
        "hw:cpu_policy": "mixed",
        "hw:cpu_dedicated_mask": "1",
        "quota:cpu_shares_multiplier": "50",
    }
    server = cloud.boot(cloud.flavor(flavor, vcpus=2), host=HOST)
    name = cloud.node_of(server)
    assert cloud.held(server) == {
        name: {DISK_GB: 1, NUMA_SERVER: 1},
        f"{name}_NUMA0": {VCPU: 1, PCPU: 1, VCPU_SHARES: 50},
        f"{name}_NUMA0_PAGES_4": {MEMORY_MB: 512},
    }
    (pid,) = guests(root)
    threads = vcpus(pid)
    assert {vcpu: cpus(thread) for vcpu, thread in threads.items()} == {0: "0", 1: "1"}
    assert {weight(thread) for thread in threads.values()} == {100}
    cloud.delete(server)
    cloud.wait_until(lambda: not guests(root), "the guest is gone")


def watchdog(root: Path, pid: int) -> tuple[list[str | None], bool]:
    """Return the actions of the watchdogs in the XML of a running guest, and whether QEMU has one.

    libvirt keeps the XML of a running guest beside its process id.
    """
    (path,) = (
        path for path in root.glob("run/qemu/instance-*.pid") if int(path.read_text()) == pid
    )
    elements = etree.parse(path.with_suffix(".xml")).iterfind("domain/devices/watchdog")
    has_device = "i6300esb" in Path(f"/proc/{pid}/cmdline").read_text()
    return [element.get("action") for element in elements], has_device


def test_the_element_of_a_plugin_in_the_running_guest(cloud: Cloud, root: Path) -> None:
    """At spawn and at a hard reboot; a guest for which the plugin has no element gets none.

    The host reports its NUMA nodes, so only guests with NUMA nodes run there.
    """
    server = cloud.boot(cloud.flavor({"hw:numa_nodes": "1", "our:watchdog": "pause"}), host=HOST)
    (spawned,) = guests(root)
    assert watchdog(root, spawned) == (["pause"], True)
    cloud.act(server, {"reboot": {"type": "HARD"}}, "ACTIVE")
    (rebooted,) = guests(root)
    assert rebooted != spawned
    assert watchdog(root, rebooted) == (["pause"], True)
    cloud.delete(server)
    cloud.wait_until(lambda: not guests(root), "the guest is gone")
    plain = cloud.boot(cloud.flavor({"hw:numa_nodes": "1"}), host=HOST)
    (pid,) = guests(root)
    assert watchdog(root, pid) == ([], False)
    cloud.delete(plain)
    cloud.wait_until(lambda: not guests(root), "the guest is gone")


@pytest.mark.parametrize("backend", draws.in_turn(["threading", "eventlet"]))
@pytest.mark.usefixtures("root")
def test_a_refusal_ends_the_process(cloud: Cloud, conf: Sections, backend: str) -> None:
    """The host reports its NUMA nodes, and the option is off at the next start.

    Only with a real libvirt Nova has the thread that would keep the process.
    """
    refused: Sections = {
        "DEFAULT": {"concurrency_backend": backend},
        "compute": {"enable_numa_reporting_to_placement": False},
    }
    cloud.stop_compute(HOST, conf, refused)
    done = cloud.computes[HOST].run()
    assert done.returncode == 1, done.stdout
    (message,) = re.findall(r" (?:ERROR|CRITICAL) .*", done.stdout)
    assert "nova-compute does not start: " in message
    assert " reports its NUMA nodes" in message
    assert "Traceback" not in done.stdout
