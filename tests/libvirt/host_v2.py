"""A host with cgroup v2: libvirtd and QEMU of this machine, inside an emulated guest.

The guest has the files of this machine's packages in its memory, and a kernel of Debian
(:mod:`tests.libvirt.linux_guest`). Its first process is :file:`host_v2.sh`.
"""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import libvirt
from lxml.builder import E

from cpu_tiers.tools.cgroup.files import Files
from tests.libvirt.contest import running
from tests.libvirt.embedded import qemu_conf
from tests.libvirt.linux_guest import (
    add_files,
    add_programs,
    linux_elements,
    new_root,
    wait_until_done,
)
from tests.libvirt.servers import server

_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
_PROGRAMS = (
    Path("/usr/bin/qemu-system-x86_64"),
    Path("/usr/bin/virt-ssh-helper"),
    Path("/usr/sbin/libvirtd"),
    _LIBRARIES / "libvirt/connection-driver/libvirt_driver_qemu.so",
    _LIBRARIES / "qemu/accel-tcg-x86_64.so",
)
_DATA = (
    Path("/etc/group"),
    Path("/etc/passwd"),
    Path("/usr/share/libvirt/cpu_map"),
    Path("/usr/share/qemu/kvmvapic.bin"),
    Path("/usr/share/seabios/bios-256k.bin"),
)
_LIBVIRTD_CONF = 'auth_unix_ro = "none"\nauth_unix_rw = "none"\n'
_MEMORY_MB = 1024
_SECONDS_TO_BOOT = 180
_SECONDS_TO_ANSWER = 60


class HostFiles(Files):
    """The files of the host, over a serial port."""

    def __init__(self, port: socket.socket) -> None:
        """Start with an empty list of faults."""
        super().__init__()
        self._port = port

    def read(self, path: str) -> str:
        """Return the content of a file: an empty text if the file does not exist."""
        self._port.sendall(f"{path}\n".encode())
        content = b""
        while not content.endswith(b"\0"):
            part = self._port.recv(4096)
            assert part, f"the host has ended; {path} cannot be read"
            content += part
        return content[:-1].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostV2:
    """A host with cgroup v2.

    :param hypervisor: the connection to the libvirtd of the host.
    :param files: the files of the host.
    """

    hypervisor: libvirt.virConnect
    files: Files


@contextmanager
def host_v2(connection: libvirt.virConnect, folder: Path) -> Iterator[HostV2]:
    """Yield a host that is a guest of this connection.

    :param folder: an empty folder, for about 200 MB.
    """
    console, ports = folder / "console", [folder / "libvirt", folder / "files"]
    serials = [E.serial(E.source(mode="bind", path=str(port)), type="unix") for port in ports]
    elements = [*linux_elements(_root(folder), console), E.devices(*serials)]
    guest = server("host-v2", extra_specs={}, memory_mb=_MEMORY_MB)
    with running(connection, guest, {"kernel": lambda _: elements}, emulated=True) as domain:
        domain.resume()
        wait_until_done(console, _SECONDS_TO_BOOT)
        with (
            closing(libvirt.open(f"qemu+unix:///system?socket={ports[0]}")) as hypervisor,
            socket.socket(socket.AF_UNIX) as port,
        ):
            hypervisor.setKeepAlive(_SECONDS_TO_ANSWER // 6, 6)
            port.settimeout(_SECONDS_TO_ANSWER)
            port.connect(str(ports[1]))
            yield HostV2(hypervisor=hypervisor, files=HostFiles(port))


def _root(folder: Path) -> Path:
    """Return the root file system of the host."""
    root = new_root(folder, "host_v2.sh")
    add_programs(root, _PROGRAMS)
    add_files(root, _DATA)
    (root / "etc/libvirt").mkdir()
    (root / "etc/libvirt/libvirtd.conf").write_text(_LIBVIRTD_CONF)
    (root / "etc/libvirt/qemu.conf").write_text(qemu_conf())
    return root
