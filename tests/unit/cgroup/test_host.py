"""Cgroups of guests, in each layout that libvirt and systemd make."""

import shutil
from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.host import read_host
from cpu_tiers.tools.tiers.domain import HostCgroups
from tests.unit.cgroup.layouts import KINDS, CountingFiles, Kind, Layout, guest

GOLD, BRONZE = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"


@pytest.fixture(params=KINDS)
def layout(request: pytest.FixtureRequest, tmp_path: Path) -> Layout:
    return Layout(tmp_path, request.param)


def read(layout: Layout, *uuids: str) -> HostCgroups:
    return read_host([*map(guest, uuids)], Files(layout.root))


def test_weights_of_guests_and_of_parent_cgroups(layout: Layout) -> None:
    layout.guest(GOLD, 200, policies=(0, 1))
    layout.guest(BRONZE, 25)
    layout.weight("/system.slice", 300)
    found = read(layout, GOLD, BRONZE)
    assert found.version == (2 if layout.v2 else 1)
    assert found.faults == ()
    assert {uuid: guest.weight for uuid, guest in found.guests.items()} == {GOLD: 200, BRONZE: 25}
    assert {uuid: guest.path for uuid, guest in found.guests.items()} == layout.paths
    machines = "/machine.slice" if layout.systemd else "/machine"
    assert found.above == {machines: layout.default, "/system.slice": 300}
    assert found.guests[GOLD].policies == {"qemu-system-x86": 0, "CPU 0/KVM": 0, "CPU 1/KVM": 1}
    assert found.sched_ext is None


def test_each_file_is_read_once_for_500_guests(layout: Layout) -> None:
    uuids = [f"00000000-0000-4000-8000-{number:012}" for number in range(500)]
    for uuid in uuids:
        layout.guest(uuid, 100)
    files = CountingFiles(layout.root)
    assert len(read_host([*map(guest, uuids)], files).guests) == 500
    assert set(files.reads.values()) == {1}
    weights = [path for path in files.reads if path.endswith(("cpu.shares", "cpu.weight"))]
    assert len(weights) == 1501  # each guest, its emulator and its vCPU, and machine.slice


def test_a_guest_that_is_not_libvirts_is_not_ours(layout: Layout) -> None:
    layout.guest(GOLD, 100)
    assert read(layout, BRONZE).guests == {}


def test_a_cgroup_without_the_cpu_controller(layout: Layout) -> None:
    layout.guest(GOLD, 100).unlink()
    found = read(layout, GOLD).guests[GOLD]
    assert (found.weight, found.foreign_path) == (None, "")


@pytest.mark.parametrize("path", ["/", "/system.slice/libvirtd.service"])
def test_a_guest_in_the_cgroup_of_another_service_has_no_weight(layout: Layout, path: str) -> None:
    layout.weight("/system.slice/libvirtd.service", 100)
    layout.guest(GOLD, 100)
    (membership,) = layout.root.glob("proc/*/cgroup")
    lines = (f"0::{path}", f"2:cpu,cpuacct:{path}")
    membership.write_text("\n".join(lines) + "\n")
    found = read(layout, GOLD).guests[GOLD]
    assert (found.weight, found.foreign_path) == (None, path)


@pytest.mark.parametrize("gone", ["cgroup", "task", ""])
def test_a_guest_that_ends_meanwhile_is_left_out_in_silence(layout: Layout, gone: str) -> None:
    layout.guest(GOLD, 100)
    layout.guest(BRONZE, 25)

    class Ending(Files):
        def read(self, path: str) -> str:
            content = super().read(path)
            if path == "/proc/1010/cmdline":
                ending = layout.root / "proc/1010" / gone
                shutil.rmtree(ending) if ending.is_dir() else ending.unlink()
            return content

    found = read_host([guest(GOLD), guest(BRONZE)], Ending(layout.root))
    assert set(found.guests) == {BRONZE}
    assert found.faults == ()


class Forbidding(Files):
    """As the kernel answers a person who may not read these."""

    def __init__(self, root: Path, forbidden: str) -> None:
        super().__init__(root)
        self.forbidden = forbidden

    def read(self, path: str) -> str:
        if path.endswith(self.forbidden):
            raise PermissionError(13, "Permission denied", path)
        return super().read(path)


@pytest.mark.parametrize("forbidden", ["/proc/1010/cgroup", "/proc/1010/task/1010/stat"])
def test_an_unreadable_file_is_a_fault_and_the_remaining_guests_are_read(
    layout: Layout, forbidden: str
) -> None:
    layout.guest(GOLD, 100)
    layout.guest(BRONZE, 25)
    found = read_host([guest(GOLD), guest(BRONZE)], Forbidding(layout.root, forbidden))
    assert set(found.guests) == {BRONZE}
    (fault,) = found.faults
    assert str(fault) == (
        f"{forbidden}: cannot be read (Permission denied); run the command as root on the "
        "compute host"
    )


def test_a_weight_that_is_no_number(layout: Layout) -> None:
    layout.guest(GOLD, 100).write_text("many\n")
    layout.guest(BRONZE, 25)
    found = read(layout, GOLD, BRONZE)
    assert set(found.guests) == {BRONZE}
    assert "is no weight" in found.faults[0].given


def test_a_bpf_scheduler(layout: Layout) -> None:
    state = layout.write("sys/kernel/sched_ext/state", "enabled\n")
    layout.write("sys/kernel/sched_ext/root/ops", "scx_rusty\n")
    assert read(layout).sched_ext == "scx_rusty"
    state.write_text("disabled\n")
    assert read(layout).sched_ext is None


@pytest.mark.parametrize(
    ("mounts", "message"),
    [
        ("proc /proc proc rw 0 0\n", "cgroups: no cpu controller is mounted"),
        (None, "/proc/self/mounts: cannot be read"),
    ],
)
def test_a_machine_without_cgroups(tmp_path: Path, mounts: str | None, message: str) -> None:
    kind: Kind = "v2"
    file = Layout(tmp_path, kind).root / "proc/self/mounts"
    file.unlink() if mounts is None else file.write_text(mounts)
    with pytest.raises(InvalidInput, match=message):
        read_host((), Files(tmp_path))


def test_limits_of_guests_and_of_parent_cgroups(layout: Layout) -> None:
    layout.guest(GOLD, 100)
    layout.guest(BRONZE, 100)
    scope = layout.paths[GOLD]
    vcpu = f"{scope}/libvirt/vcpu0" if layout.systemd else f"{scope}/vcpu0"
    slice_ = scope.rpartition("/")[0]
    for path, quota in ((vcpu, "20000"), (slice_, "150000")):
        layout.file(path, "cpu.cfs_quota_us", "cpu.max", quota + (" 50000" if layout.v2 else ""))
        layout.file(path, "cpu.cfs_period_us", "unused", "50000")
    layout.file(scope, "cpu.cfs_quota_us", "cpu.max", "max 100000" if layout.v2 else "-1")
    layout.file(scope, "cpu.idle", "cpu.idle", "1\n")
    layout.file(slice_, "cpu.idle", "cpu.idle", "0\n")
    layout.weight(vcpu, 7)
    found = read(layout, GOLD, BRONZE)
    assert found.quotas == {vcpu: (20_000, 50_000), slice_: (150_000, 50_000)}
    assert found.idle == {scope}
    assert found.guests[GOLD].inner_weights == {
        vcpu.removeprefix(f"{scope}/"): 7,
        vcpu.removeprefix(f"{scope}/").replace("vcpu0", "emulator"): layout.default,
    }
    assert found.faults == ()


def test_cgroups_beside_guests(layout: Layout) -> None:
    layout.guest(GOLD, 100)
    slice_ = layout.paths[GOLD].rpartition("/")[0]
    of_a_guest = "machine-qemu\\x2d9\\x2dx.scope" if layout.systemd else "qemu-9-x.libvirt-qemu"
    for name, process in (("foreign", "55\n"), ("left", ""), (of_a_guest, "56\n")):
        layout.weight(f"{slice_}/{name}", 7000)
        events = f"populated {int(bool(process))}\nfrozen 0\n"
        text = events if layout.v2 else ""  # the processes are one level below in v1
        layout.file(f"{slice_}/{name}", "cgroup.procs", "cgroup.events", text)
        layout.file(f"{slice_}/{name}/below", "cgroup.procs", "unused", process)
    found = read(layout, GOLD)
    assert found.beside == {f"{slice_}/foreign": 7000}
    assert found.faults == ()


def test_a_guest_that_the_freezer_stopped(layout: Layout) -> None:
    layout.guest(GOLD, 100)
    layout.guest(BRONZE, 100)
    threads = f"{layout.paths[GOLD]}{'/libvirt' * layout.systemd}/emulator"
    if layout.v2:
        layout.write(f"sys/fs/cgroup{threads}/cgroup.events", "populated 1\nfrozen 1\n")
    else:
        mounts = layout.root / "proc/self/mounts"
        freezer = "cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n"
        mounts.write_text(mounts.read_text() + freezer)
        for pid, state in ((1010, "FROZEN"), (1020, "THAWED")):
            member = layout.root / f"proc/{pid}/cgroup"
            member.write_text(member.read_text() + f"7:freezer:/machine/{pid}\n")
            layout.write(f"sys/fs/cgroup/freezer/machine/{pid}/freezer.state", f"{state}\n")
    frozen = {uuid: found.is_frozen for uuid, found in read(layout, GOLD, BRONZE).guests.items()}
    assert frozen == {GOLD: True, BRONZE: False}


def test_the_cpus_that_the_load_balancer_leaves_out(layout: Layout) -> None:
    layout.guest(GOLD, 100)
    assert read(layout, GOLD).isolated == frozenset()
    layout.write("sys/devices/system/cpu/isolated", "\n")
    assert read(layout, GOLD).isolated == frozenset()
    layout.write("sys/devices/system/cpu/isolated", "2-3,7\n")
    assert sorted(read(layout, GOLD).isolated) == [2, 3, 7]
    if layout.v2:
        layout.write("sys/fs/cgroup/cpuset.cpus.isolated", "5\n")
        assert sorted(read(layout, GOLD).isolated) == [2, 3, 5, 7]
