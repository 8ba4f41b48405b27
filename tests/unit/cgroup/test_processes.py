"""QEMU processes in /proc, and the policies of their threads."""

from pathlib import Path

import pytest

from cpu_tiers.cgroup.files import Files
from cpu_tiers.cgroup.processes import find_guests, policies

UUID = "00000000-0000-4000-8000-00000000abcd"


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


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
    write(tmp_path, "proc/42/cmdline", "\0".join(arguments))
    write(tmp_path, "proc/self/cmdline", f"qemu\0-uuid\0{UUID}")  # no process id
    assert find_guests(Files(tmp_path), {UUID}) == ({UUID: "42"} if is_guest else {})


def stat(name: str, policy: int) -> str:
    """Return a line of proc(5): the name is field 2, the policy is field 41."""
    between = " ".join(str(field) for field in range(4, 41))
    return f"1 ({name}) S {between} {policy} 0 0\n"


def test_the_policies_of_threads(tmp_path: Path) -> None:
    write(tmp_path, "proc/42/task/42/stat", stat("qemu (a) b", 0))
    write(tmp_path, "proc/42/task/43/stat", stat("CPU 0/KVM", 1))
    assert policies(Files(tmp_path), "42") == {"qemu (a) b": 0, "CPU 0/KVM": 1}


@pytest.mark.parametrize("numbers", [(0, 2), (2, 0)])
def test_of_threads_with_equal_names_the_unusual_policy_counts(
    tmp_path: Path, numbers: tuple[int, int]
) -> None:
    for thread, policy in enumerate(numbers, 43):
        write(tmp_path, f"proc/42/task/{thread}/stat", stat("worker", policy))
    assert policies(Files(tmp_path), "42") == {"worker": 2}


def test_a_thread_that_ended(tmp_path: Path) -> None:
    (tmp_path / "proc/42/task/43").mkdir(parents=True)
    assert policies(Files(tmp_path), "42") == {}
