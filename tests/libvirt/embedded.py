"""The QEMU driver of libvirt inside this process, over a private folder.

The driver does not touch the libvirt of the machine; see
https://libvirt.org/drvqemu.html#embedded-driver. Guests run as root.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import libvirt

from tests.libvirt.cgroup import partition

_OPTIONS = {"user": "root", "group": "root", "security_driver": "none", "stdio_handler": "file"}


def configure(root: Path, **options: str) -> str:
    """Write qemu.conf in a new folder, and return the URI of the driver over it."""
    (root / "etc").mkdir()
    (root / "etc" / "qemu.conf").write_text(qemu_conf(**options))
    return f"qemu:///embed?root={root}"


def qemu_conf(**options: str) -> str:
    """Return a qemu.conf with which guests run as root and need no daemon beside libvirt."""
    return "".join(f'{key} = "{value}"\n' for key, value in {**_OPTIONS, **options}.items())


@contextmanager
def embedded(root: Path) -> Iterator[libvirt.virConnect]:
    """Open a connection whose configuration and state are in ``root``."""
    uri = configure(root)
    libvirt.virEventRegisterDefaultImpl()
    stop = threading.Event()
    threading.Thread(target=_run_events, args=(stop,), daemon=True).start()
    connection = libvirt.open(uri)
    try:
        with partition():
            yield connection
    finally:
        connection.close()
        stop.set()


def _run_events(stop: threading.Event) -> None:
    while not stop.is_set():
        libvirt.virEventRunDefaultImpl()
