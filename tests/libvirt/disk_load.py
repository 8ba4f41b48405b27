"""A disk from which a guest boots that reads the disk all the time: :file:`disk_load.S`."""

import os
from pathlib import Path

from lxml import etree
from lxml.builder import E

from tests.libvirt.contest import assemble

_DISK_BYTES = 64 * 2**20


def disk(folder: Path, kilobytes: int) -> Path:
    """Return a disk from which a guest boots that reads so many kilobytes at a time."""
    path = assemble("disk_load.S", folder / "disk", SECTORS=2 * kilobytes)
    with path.open("ab") as file:
        file.write(os.urandom(_DISK_BYTES - path.stat().st_size))
    return path


def devices(path: Path, console: Path, io: str, iothreads: int) -> list[etree._Element]:
    """Return the elements of a domain with this disk."""
    driver = {"name": "qemu", "type": "raw", "cache": "none", "io": io}
    if iothreads:
        driver["iothread"] = "1"
    drive = E.disk(
        E.driver(**driver),
        E.source(file=str(path)),
        E.target(dev="vda", bus="virtio"),
        type="file",
        device="disk",
    )
    serial = E.serial(E.source(path=str(console)), type="file")
    return [E.devices(drive, serial)]
