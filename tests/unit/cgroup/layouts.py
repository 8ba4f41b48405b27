"""Trees of /proc and /sys as kernels and libvirt lay them out, in a folder.

The layouts are those of https://libvirt.org/cgroups.html, and of libvirt 9 with
cgroup v1 as seen on a running host.
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.tiers.domain import Domain

Kind = Literal["v1", "v1 systemd", "v2", "v2 systemd", "hybrid systemd"]
KINDS: tuple[Kind, ...] = ("v1", "v1 systemd", "v2", "v2 systemd", "hybrid systemd")

_V1 = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
_MEMORY = "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
_V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
_UNIFIED = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0\n"
_MOUNTS: dict[Kind, str] = {
    "v1": _MEMORY + _V1,
    "v1 systemd": _MEMORY + _V1,
    "v2": _V2,
    "v2 systemd": _V2,
    "hybrid systemd": _UNIFIED + _V1,
}


@dataclass(slots=True)
class Layout:
    """A host; ``guest`` and ``service`` add to it."""

    root: Path
    kind: Kind
    guests: int = 0
    paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.write("proc/self/mounts", _MOUNTS[self.kind])
        self.write("proc/1/cmdline", "/sbin/init\0")
        self.weight("/machine.slice" if self.systemd else "/machine", self.default)

    @property
    def systemd(self) -> bool:
        return self.kind.endswith("systemd")

    @property
    def v2(self) -> bool:
        return self.kind.startswith("v2")

    @property
    def default(self) -> int:
        return 100 if self.v2 else 1024

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def weight(self, cgroup: str, weight: int) -> Path:
        """Give a cgroup a weight, and return the file."""
        mount = "sys/fs/cgroup" if self.v2 else "sys/fs/cgroup/cpu,cpuacct"
        name = "cpu.weight" if self.v2 else "cpu.shares"
        return self.write(f"{mount}{cgroup}/{name}", f"{weight}\n")

    def file(self, cgroup: str, v1: str, v2: str, text: str) -> Path:
        """Write a file of a cgroup, by its name in each version."""
        mount = "sys/fs/cgroup" if self.v2 else "sys/fs/cgroup/cpu,cpuacct"
        return self.write(f"{mount}{cgroup}/{v2 if self.v2 else v1}", text)

    def member(self, path: str) -> str:
        """Return the line of ``/proc/PID/cgroup`` for the cpu controller."""
        return f"0::{path}\n" if self.v2 else f"2:cpu,cpuacct:{path}\n"

    def guest(self, uuid: str, weight: int, policies: tuple[int, ...] = (0,)) -> Path:
        """Run a guest, whose vCPUs have these policies; return the file of its weight."""
        self.guests += 1
        number, pid = self.guests, 1000 + 10 * self.guests
        name = f"instance-{number:08x}"
        if self.systemd:
            escaped = name.replace("-", "\\x2d")
            path = f"/machine.slice/machine-qemu\\x2d{number}\\x2d{escaped}.scope"
            threads = f"{path}/libvirt"
        else:
            path = threads = f"/machine/qemu-{number}-{name}.libvirt-qemu"
        self.paths[uuid] = path
        for child in ("emulator", *(f"vcpu{i}" for i in range(len(policies)))):
            self.weight(f"{threads}/{child}", self.default)
        self.write(f"proc/{pid}/cmdline", f"/usr/bin/qemu\0-name\0guest={name}\0-uuid\0{uuid}\0")
        membership = f"5:memory:{path}\n" + self.member(f"{threads}/emulator")
        if self.kind == "hybrid systemd":
            membership += "0::/elsewhere\n"
        self.write(f"proc/{pid}/cgroup", membership)
        self.write(f"proc/{pid}/status", f"Name:\tqemu\nUid:\t{os.geteuid()}\t0\t0\t0\n")
        (self.root / f"proc/{pid}/exe").symlink_to("/usr/bin/qemu-system-x86_64")
        self._thread(pid, pid, "qemu-system-x86", 0, f"{threads}/emulator")
        for vcpu, policy in enumerate(policies):
            thread, name = pid + 1 + vcpu, f"CPU {vcpu}/KVM"
            self._thread(pid, thread, name, policy, f"{threads}/vcpu{vcpu}")
            status = f"Name:\t{name}\nState:\tS (sleeping)\nCpus_allowed_list:\t0-1\n"
            status += "voluntary_ctxt_switches:\t1\n"
            self.write(f"proc/{pid}/task/{thread}/status", status)
        return self.weight(path, weight)

    def _thread(self, pid: int, thread: int, name: str, policy: int, cgroup: str) -> None:
        folder = f"proc/{pid}/task/{thread}"
        self.write(f"{folder}/stat", stat_line(thread, name, policy=policy))
        self.write(f"{folder}/cgroup", self.member(cgroup))


def stat_line(pid: int, name: str, *, state: str = "S", ticks: int = 0, policy: int = 0) -> str:
    """Return a line of proc(5), with fields 2, 3, 14, 22 and 41, and further fields 0."""
    fields = dict.fromkeys(range(4, 45), "0") | {14: str(ticks), 41: str(policy)}
    return f"{pid} ({name}) {state} {' '.join(fields.values())}\n"


def guest(uuid: str, **values: Any) -> Domain:
    """Return a domain as libvirt reports it, whose QEMU runs as the user of the tests."""
    emulator = "/usr/bin/qemu-system-x86_64"
    return Domain(
        **{"name": uuid[-4:], "uuid": uuid, "vcpu_sets": (), "emulator": emulator, **values}
    )


class CountingFiles(Files):
    """Files that remember how often each was read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = Counter[str]()

    def read(self, path: str) -> str:
        self.reads[path] += 1
        return super().read(path)
