"""A real libvirt: a daemon for these tests only, and QEMU guests in a private root.

The tests do not touch the libvirt of the machine. The daemon listens on sockets
in a temporary folder; guests run under libvirt's embedded QEMU driver
(https://libvirt.org/drvqemu.html#embedded-driver), whose configuration and
state are in a folder of its own.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import libvirt
import pytest

from tests.libvirt.embedded import embedded


@pytest.fixture(scope="session")
def daemon_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a libvirtd that was started for these tests."""
    folder = tmp_path_factory.mktemp("libvirtd")
    conf, socket, log = folder / "libvirtd.conf", folder / "libvirt-sock-ro", folder / "log"
    conf.write_text(f'unix_sock_dir = "{folder}"\nauth_unix_ro = "none"\nauth_unix_rw = "none"\n')
    command = ["/usr/sbin/libvirtd", "--config", str(conf), "--pid-file", str(folder / "pid")]
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as daemon,
    ):
        try:
            deadline = time.monotonic() + 30
            while not socket.exists():
                assert daemon.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield f"qemu+unix:///system?socket={socket}"
        finally:
            daemon.terminate()
            daemon.wait(30)


@pytest.fixture(scope="session")
def hypervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[libvirt.virConnect]:
    """A libvirt connection that runs guests as root, as these machines need it."""
    with embedded(tmp_path_factory.mktemp("embed")) as connection:
        yield connection


@pytest.fixture(scope="session")
def kvm() -> bool:
    """Whether guests can use KVM; else they are emulated."""
    return Path("/dev/kvm").exists()
