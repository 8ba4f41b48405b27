"""QEMU processes in /proc, and the policies of their threads."""

import os
from pathlib import Path

import pytest

from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.processes import find_guests, policies, threads
from cpu_tiers.tools.tiers.domain import Domain
from tests.unit.cgroup.layouts import guest, stat_line

UUID = "00000000-0000-4000-8000-00000000abcd"
QEMU = "/usr/bin/qemu-system-x86_64"


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def process(
    root: Path, pid: int, *arguments: str, program: str = QEMU, user: int | None = None
) -> None:
    """Run a program with these arguments, as the user of the tests or another."""
    write(root, f"proc/{pid}/cmdline", "\0".join(arguments))
    uid = os.geteuid() if user is None else user
    write(root, f"proc/{pid}/status", f"Name:\tqemu\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    (root / f"proc/{pid}/exe").symlink_to(program)


@pytest.mark.parametrize(
    ("arguments", "is_guest"),
    [
        pytest.param(["qemu", "-uuid", UUID, "-S", ""], True, id="libvirt's QEMU"),
        pytest.param(["qemu", "-uuid", UUID.upper()], True, id="in capital letters"),
        pytest.param(["qemu", "-uuid", "another"], False, id="another guest"),
        pytest.param(["qemu", UUID], False, id="the uuid as another argument"),
        pytest.param(["qemu", "-uuid"], False, id="nothing after -uuid"),
        pytest.param([""], False, id="a kernel thread"),
    ],
)
def test_the_process_of_a_guest(tmp_path: Path, arguments: list[str], is_guest: bool) -> None:
    process(tmp_path, 42, *arguments)
    write(tmp_path, "proc/self/cmdline", f"qemu\0-uuid\0{UUID}")  # no process id
    assert find_guests(Files(tmp_path), [guest(UUID)]) == ({UUID: "42"} if is_guest else {})


@pytest.mark.parametrize(
    ("domain", "program", "user", "is_guest"),
    [
        pytest.param(guest(UUID), "/usr/bin/python3.11", None, False, id="another program"),
        pytest.param(guest(UUID), f"{QEMU} (deleted)", None, True, id="upgraded meanwhile"),
        pytest.param(guest(UUID, emulator="/opt/kvm"), "/opt/kvm", None, True, id="the XML's"),
        pytest.param(guest(UUID, emulator="/opt/kvm"), QEMU, None, True, id="a script starts it"),
        pytest.param(guest(UUID), QEMU, 64_055, False, id="a user that libvirt does not name"),
        pytest.param(guest(UUID, owner="64055"), QEMU, 64_055, True, id="the user in the XML"),
        pytest.param(guest(UUID, owner="64055"), QEMU, 1000, False, id="another user"),
        pytest.param(guest(UUID, owner="root"), QEMU, 0, True, id="the user by name"),
        pytest.param(guest(UUID, owner="no-such-user"), QEMU, 0, False, id="an unknown name"),
    ],
)
def test_a_guest_process_has_the_program_and_the_user_of_libvirt(
    tmp_path: Path, domain: Domain, program: str, user: int | None, is_guest: bool
) -> None:
    process(tmp_path, 42, "qemu", "-uuid", UUID, program=program, user=user)
    files = Files(tmp_path)
    assert find_guests(files, [domain]) == ({UUID: "42"} if is_guest else {})
    assert files.faults == []


def test_two_processes_with_the_uuid_of_a_guest(tmp_path: Path) -> None:
    for pid in (42, 43):
        process(tmp_path, pid, "qemu", "-uuid", UUID)
    process(tmp_path, 44, "sh", "-uuid", UUID, program="/bin/sh")
    files = Files(tmp_path)
    assert find_guests(files, [guest(UUID)]) == {}
    (fault,) = files.faults
    assert str(fault) == (
        "guest abcd: processes 42, 43 have its uuid, its program and its user; end the process"
        " that libvirt did not start"
    )


def policies_of(root: Path) -> dict[str, int]:
    return dict(policies(list(threads(Files(root), "42"))))


def test_the_policies_of_threads(tmp_path: Path) -> None:
    write(tmp_path, "proc/42/task/42/stat", stat_line(42, "qemu (a) b", state="T"))
    write(tmp_path, "proc/42/task/43/stat", stat_line(43, "CPU 0/KVM", policy=1))
    assert policies_of(tmp_path) == {"qemu (a) b": 0, "CPU 0/KVM": 1}
    assert [thread.state for thread in threads(Files(tmp_path), "42")] == ["T", "S"]


@pytest.mark.parametrize("numbers", [(0, 2), (2, 0)])
def test_of_threads_with_equal_names_the_unusual_policy_counts(
    tmp_path: Path, numbers: tuple[int, int]
) -> None:
    for thread, policy in enumerate(numbers, 43):
        write(tmp_path, f"proc/42/task/{thread}/stat", stat_line(thread, "worker", policy=policy))
    assert policies_of(tmp_path) == {"worker": 2}


def test_a_thread_that_ended(tmp_path: Path) -> None:
    (tmp_path / "proc/42/task/43").mkdir(parents=True)
    assert policies_of(tmp_path) == {}


@pytest.mark.parametrize("text", ["", "1", "1 (a", "1 (a) S 1 2", ")" * 99])
def test_a_short_stat_is_a_fault(tmp_path: Path, text: str) -> None:
    write(tmp_path, "proc/42/task/43/stat", text)
    with pytest.raises(ValueError, match="stat ends before field 41"):
        list(threads(Files(tmp_path), "42"))
