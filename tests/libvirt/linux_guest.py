"""Guests with a kernel of Debian, whose root file system is a folder of this machine.

The kernel comes from the package linux-image-cloud-amd64, and the programs of the guest from this
machine: busybox, and what a test adds. The guest is emulated (TCG), because some hosts have a KVM
that runs spin.S but does not boot Linux.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from lxml import etree
from lxml.builder import E

_FOLDERS = ("bin", "dev", "proc", "run", "sys", "tmp", "var")


def new_root(folder: Path, init: str) -> Path:
    """Return a new root file system with busybox, in place of an earlier one in the folder.

    :param init: the script beside this module that is the first process of the guest. The script
        prints a line ``done`` on the console when the guest is ready.
    """
    root = folder / "initramfs"
    shutil.rmtree(root, ignore_errors=True)
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    shutil.copy(Path(__file__).with_name(init), root / "init")
    (root / "init").chmod(0o755)
    return root


def add_programs(root: Path, programs: Iterable[Path]) -> None:
    """Copy programs and plugins of this machine, with the libraries that they load."""
    listed = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True)
    libraries = re.findall(r"(/\S+) \(0x", listed.stdout)
    add_files(root, {*programs, *map(Path, libraries)})


def add_files(root: Path, paths: Iterable[Path]) -> None:
    """Copy files and folders of this machine to the same places."""
    for path in paths:
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target)
        else:
            shutil.copy(path, target)


def linux_elements(root: Path, console: Path, settings: str = "") -> list[etree._Element]:
    """Return the elements of the domain XML for a guest that boots from this root.

    :param console: the file for the output of the guest.
    :param settings: environment variables of the first process.
    """
    command_line = E.cmdline(f"console=ttyS0 quiet {settings}")
    return [
        E.os(E.kernel(str(_kernel())), E.initrd(_initrd(root)), command_line),
        E.features(E.acpi()),
        E.devices(E.serial(E.source(path=str(console)), type="file")),
    ]


def kernel_release() -> str:
    """Return the release of the kernel of the guests, such as ``6.1.0-18-cloud-amd64``."""
    return _kernel().name.removeprefix("vmlinuz-")


def _kernel() -> Path:
    """Return the newest kernel of the package."""
    kernels = Path("/boot").glob("vmlinuz-*-cloud-amd64")
    return max(kernels, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])


def _initrd(root: Path) -> str:
    """Return the archive of a root file system that a kernel unpacks into its memory."""
    initrd = root.with_name("initrd")
    names = "".join(f"{path.relative_to(root)}\n" for path in root.rglob("*"))
    command = ["cpio", "--create", "--format=newc", "--quiet", "-F", str(initrd)]
    subprocess.run(command, cwd=root, input=names, text=True, check=True)
    return str(initrd)


def wait_until_done(console: Path, seconds: float) -> str:
    """Return what the guest has printed up to ``done``."""
    deadline = time.monotonic() + seconds
    while True:
        text = console.read_text(errors="replace")
        if "done" in text.splitlines():
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.5)
