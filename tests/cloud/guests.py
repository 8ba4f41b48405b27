"""Prints what libvirt and the kernel have of each guest of this host: JSON by the server's uuid.

Runs in the cloud, with the Python of its services. Uses nothing of cpu-tiers.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import libvirt

_VCPU = re.compile(r"CPU (\d+)/(?:KVM|TCG)")
_CONTROL_GROUP = re.compile(r"^\d+:(?:.*,)?cpu(?:,.*)?:(.*)$|^0::(.*)$", re.MULTILINE)
_WEIGHTS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
"""Of cgroup v1, where the kernel's name is ``cpu.shares``, and of v2, with ``cpu.weight``."""


def groups_of(pid: str) -> Iterator[Path]:
    """Yield where the control group that has all threads of a guest may be."""
    text = Path(f"/proc/{pid}/cgroup").read_text()
    for v1, v2 in _CONTROL_GROUP.findall(text):
        group = Path((v1 or v2).removesuffix("/emulator").lstrip("/"))
        yield from (root / group for root in _WEIGHTS)


def weight_of(pid: str) -> int | None:
    """Return the weight of the control group that has all threads of a guest."""
    for group in groups_of(pid):
        for name in (group / "cpu.shares", group / "cpu.weight"):
            if name.exists():
                return int(name.read_text())
    return None


def cpus_of(pid: str) -> dict[str, str]:
    """Return the CPUs on which the kernel lets each vCPU run, by its number."""
    cpus = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        if match := _VCPU.match((task / "comm").read_text()):
            status = (task / "status").read_text()
            cpus[match[1]] = status.partition("Cpus_allowed_list:")[2].split()[0]
    return cpus


def guest_of(domain: Any) -> dict[str, Any]:
    """Return what libvirt and the kernel have of a guest."""
    root = ElementTree.fromstring(domain.XMLDesc())  # noqa: S314  # written by libvirt
    pid = Path(f"/run/libvirt/qemu/{domain.name()}.pid").read_text().strip()
    shares = root.findtext("cputune/shares")
    return {
        "state": domain.state()[0],
        "shares": int(shares) if shares else None,
        "weight": weight_of(pid),
        "pins": {pin.get("vcpu"): pin.get("cpuset") for pin in root.iter("vcpupin")},
        "cpus": cpus_of(pid),
    }


if __name__ == "__main__":
    connection = libvirt.openReadOnly("qemu:///system")
    domains = connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
    print(json.dumps({each.UUIDString(): guest_of(each) for each in domains}))  # noqa: T201
