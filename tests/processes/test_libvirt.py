"""A server on a real libvirt and KVM: from the API to the threads in the kernel."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpu_tiers.model.names import (
    DISK_GB,
    MEMORY_MB,
    NUMA_SERVER,
    PCPU,
    VCPU,
    VCPU_SHARES,
)
from tests.libvirt.cgroup import cpu_cgroups
from tests.libvirt.embedded import configure
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.control import BIN

HOST = "real"


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
def root(cloud: Cloud, folder: Path, conf: Sections) -> Iterator[Path]:
    """The folder of libvirt, on a host that runs."""
    cloud.start_compute(HOST, conf, command=(str(BIN / "cpu-tiers-nova-compute"), "--config-file"))
    yield folder
    cloud.computes[HOST].stop()
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


@pytest.mark.parametrize("backend", ["threading", "eventlet"])
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
