"""The cgroup of a guest from /proc/PID/cgroup, and the hierarchy in use (cgroups(7))."""

from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import Hierarchy, find_hierarchy
from cpu_tiers.tools.tiers.domain import Version

V1 = Hierarchy(version=1, mount="/sys/fs/cgroup/cpu,cpuacct")
V2 = Hierarchy(version=2, mount="/sys/fs/cgroup")
SCOPE = r"/machine.slice/machine-qemu\x2d1\x2dvm.scope"


@pytest.mark.parametrize(
    ("hierarchy", "membership", "path"),
    [
        pytest.param(V2, f"0::{SCOPE}/libvirt/emulator\n", SCOPE, id="v2 with systemd"),
        pytest.param(V2, f"0::{SCOPE}/libvirt/vcpu12", SCOPE, id="v2, a vCPU"),
        pytest.param(V2, f"0::{SCOPE}/libvirt", SCOPE, id="v2, above all threads"),
        pytest.param(
            V1,
            "5:memory:/machine/x\n2:cpu,cpuacct:/machine/qemu-1-vm.libvirt-qemu/emulator\n",
            "/machine/qemu-1-vm.libvirt-qemu",
            id="v1: the line of the cpu controller",
        ),
        pytest.param(V1, "2:cpu:/gold/qemu-1-vm/iothread1", "/gold/qemu-1-vm", id="a partition"),
        pytest.param(V1, "2:cpuacct:/a/emulator\n0::/b/emulator", None, id="v1: no such line"),
        pytest.param(V2, "2:cpu:/a/emulator", None, id="v2: no such line"),
        pytest.param(V2, "0::/system.slice/libvirtd.service", None, id="libvirt made no cgroup"),
        pytest.param(V2, "", None, id="no line"),
        pytest.param(V1, "2:cpu:/a:b/emulator", "/a:b", id="a colon in a name"),
        pytest.param(V2, "\n\n:\n0:\n0::/a/emulator\n", "/a", id="empty and short lines"),
        pytest.param(V2, "0::/a\x0bb\u2028c/emulator", "/a\x0bb\u2028c", id="no line feed"),
    ],
)
def test_the_cgroup_of_a_guest(hierarchy: Hierarchy, membership: str, path: str | None) -> None:
    assert hierarchy.guest_of(membership) == path


def test_weights(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup/machine.slice"
    folder.mkdir(parents=True)
    files = Files(tmp_path)
    assert V2.weight(files, "/machine.slice") is None
    (folder / "cpu.weight").write_text("100\n")
    assert V2.weight(files, "/machine.slice") == 100
    # tests/fuzz found that 400 digits are no float, which Prometheus takes
    for text in ("idle", "9" * 400, "-1", "²", "1_0", ""):
        (folder / "cpu.weight").write_text(f"{text}\n")
        with pytest.raises(ValueError, match=f"'{text[:40]}' is no weight"):
            V2.weight(files, "/machine.slice")


CPU = "cgroup /v1/cpu cgroup rw,cpu 0 0\n"
MEMORY = "cgroup /v1/memory cgroup rw,memory 0 0\n"
UNIFIED = "cgroup2 /v2 cgroup2 rw 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "version", "mount"),
    [
        pytest.param(CPU, 1, "/v1/cpu", id="v1"),
        pytest.param(UNIFIED, 2, "/v2", id="v2"),
        pytest.param(UNIFIED + CPU, 1, "/v1/cpu", id="hybrid: the cpu controller is in v1"),
        pytest.param(MEMORY + UNIFIED, 2, "/v2", id="v1 without the cpu controller"),
        pytest.param(CPU + CPU.replace("/v1", "/again"), 1, "/v1/cpu", id="mounted twice"),
        pytest.param("\n\ncgroup2 /short\ncgroup2\n" + UNIFIED, 2, "/v2", id="short lines"),
        pytest.param(
            UNIFIED.replace("/v2", r"/a\040b\134c\200\777"),
            2,
            r"/a b\c\200\777",
            id="a blank and a backslash in the mount point; the kernel escapes no other bytes",
        ),
    ],
)
def test_the_hierarchy_in_use(tmp_path: Path, mounts: str, version: Version, mount: str) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(mounts)
    assert find_hierarchy(Files(tmp_path)) == Hierarchy(version=version, mount=mount)


def test_no_cpu_controller(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(MEMORY)
    with pytest.raises(InvalidInput, match="cgroups: no cpu controller is mounted"):
        find_hierarchy(Files(tmp_path))
