"""Trees of /proc and /sys as kernels and libvirt lay them out, in a folder.

The layouts are those of https://libvirt.org/cgroups.html, and of libvirt 9 with
cgroup v1 as seen on a running host.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cpu_tiers.cgroup.files import Files

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
        ours = "0" if self.v2 else "2"
        controllers = "" if self.v2 else "cpu,cpuacct"
        lines = [f"5:memory:{path}", f"{ours}:{controllers}:{threads}/emulator"]
        if self.kind == "hybrid systemd":
            lines.append("0::/elsewhere")
        self.write(f"proc/{pid}/cgroup", "\n".join(lines) + "\n")
        self._stat(pid, pid, "qemu-system-x86", 0)
        for vcpu, policy in enumerate(policies):
            self._stat(pid, pid + 1 + vcpu, f"CPU {vcpu}/KVM", policy)
        return self.weight(path, weight)

    def _stat(self, pid: int, thread: int, name: str, policy: int) -> None:
        before = " ".join("0" for _ in range(4, 41))  # fields 4 to 40
        stat = f"{thread} ({name}) S {before} {policy} 0 0\n"
        self.write(f"proc/{pid}/task/{thread}/stat", stat)


class CountingFiles(Files):
    """Files that remember how often each was read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = Counter[str]()

    def read(self, path: str) -> str:
        self.reads[path] += 1
        return super().read(path)
