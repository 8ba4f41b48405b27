r"""Where cgroups with a CPU weight are: cgroup v1 or v2, with systemd's layout or without.

libvirt (https://libvirt.org/cgroups.html) keeps a guest in
``machine.slice/machine-qemu\x2d1\x2dNAME.scope`` where systemd runs, else in
``machine/qemu-1-NAME.libvirt-qemu``, or wherever ``<resource><partition>`` says.
The threads are in ``emulator``, ``vcpu0``… below, and with systemd these in
``libvirt``. The weight of the guest is that of the cgroup above all of them.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from cpu_tiers.cgroup.files import VANISHED, Files
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cgroup import Version

_BELOW_A_GUEST = re.compile(r"(/libvirt)?(/(emulator|vcpu[0-9]+|iothread[0-9]+))?$")
_WEIGHT_FILE = {1: "cpu.shares", 2: "cpu.weight"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The hierarchy that divides CPU time."""

    version: Version
    mount: str

    def guest_of(self, membership: str) -> str | None:
        """Return the path of the guest's cgroup, from a ``/proc/PID/cgroup``.

        ``None`` where libvirt made none: QEMU is then in that of libvirt itself.
        """
        for line in membership.splitlines():
            number, controllers, path = line.split(":", 2)
            ours = number == "0" if self.version == 2 else "cpu" in controllers.split(",")
            if ours:
                own = _BELOW_A_GUEST.sub("", path)
                return own if own != path else None
        return None

    def weight(self, files: Files, path: str) -> int | None:
        """Return the weight of a cgroup, ``None`` where it has none.

        :raises OSError: it may not be read.
        :raises ValueError: it is no number.
        """
        try:
            return int(files.read(f"{self.folder(path)}/{_WEIGHT_FILE[self.version]}"))
        except VANISHED:
            return None

    def folder(self, path: str) -> str:
        """Return where a cgroup is."""
        return str(PurePosixPath(self.mount) / path.lstrip("/"))


def find_hierarchy(files: Files) -> Hierarchy:
    """Return the hierarchy with the cpu controller; v1 where both are mounted and it has it.

    :raises InvalidInput: none is mounted, or the mounts cannot be read.
    """
    try:
        mounts = files.read("/proc/self/mounts")
    except OSError as error:
        raise InvalidInput.of("/proc/self/mounts", f"cannot be read ({error})", _NEEDS) from error
    found: dict[Version, str] = {}
    for line in mounts.splitlines():
        _, folder, kind, options = line.split(" ")[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            found.setdefault(1, folder)
        elif kind == "cgroup2":
            found.setdefault(2, folder)
    if not found:
        raise InvalidInput.of("cgroups", "no cpu controller is mounted", _NEEDS)
    version = min(found)
    return Hierarchy(version=version, mount=found[version])


_NEEDS = "run the audit on the compute host, where /sys/fs/cgroup is mounted"
