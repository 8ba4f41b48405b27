"""Measure the contests on cgroup v2, inside a guest with a kernel of Debian.

Cgroups with the weights of the guests take the place of the guests. :file:`spin_v2.sh` makes the
cgroups in the layout that libvirt uses on a host with systemd. The kernel comes from the package
linux-image-cloud-amd64, everything else is busybox. The guest is emulated (TCG), because some
hosts have a KVM that runs spin.S but does not boot Linux. A slow CPU does not matter: the
scheduler divides slow and fast CPUs alike.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import libvirt
from lxml.builder import E

from cpu_tiers.guest.entitlement import Contender
from tests.libvirt.cgroup import cpu_cgroups, outweighing
from tests.libvirt.contest import running, threads
from tests.libvirt.contestants import SERVICE, Contest
from tests.libvirt.servers import server

DEFAULT_WEIGHT = 100

_SECONDS_TO_BOOT = 120
_SECONDS_TO_SETTLE = 3


def delivered_v2(
    connection: libvirt.virConnect, folder: Path, contest: Contest, *, seconds: int, count: int = 1
) -> list[dict[str, float]]:
    """Return the CPUs that each guest received, for each window."""
    contenders = contest.contenders(DEFAULT_WEIGHT)
    if contest.service:
        contenders[SERVICE] = Contender(weight=DEFAULT_WEIGHT, threads={contest.service: 1})
    scopes = {_scope(name): name for name in contenders}
    lines = [
        line for name, contender in contenders.items() for line in _lines(_scope(name), contender)
    ]
    kernel, initrd, console = _kernel(), _initrd(folder, lines), folder / "console"
    cpus = frozenset(range(_cpus(contenders.values())))
    guest = server("cgroup-v2", cpus=cpus, vcpus=len(cpus), extra_specs={}, memory_mb=256)
    settings = f"SETTLE={_SECONDS_TO_SETTLE} WINDOW={seconds} COUNT={count}"
    elements = [
        E.os(E.kernel(kernel), E.initrd(initrd), E.cmdline(f"console=ttyS0 quiet {settings}")),
        E.features(E.acpi()),
        E.devices(E.serial(E.source(path=str(console)), type="file")),
    ]
    with running(connection, guest, {"kernel": lambda _: elements}, emulated=True) as domain:
        machines = cpu_cgroups(threads(domain)[0])[-1]
        with outweighing(machines):
            domain.resume()
            text = _wait(console, _SECONDS_TO_BOOT + seconds * count)
    none = {contestant.name: 0.0 for contestant in contest.contestants}
    return [none | window for window in _windows(text, scopes)]


def _cpus(contenders: Iterable[Contender]) -> int:
    """Return the number of CPUs that the contenders need."""
    return 1 + max(cpu for contender in contenders for cpus in contender.threads for cpu in cpus)


def _scope(name: str) -> str:
    if name == SERVICE:
        return "system.slice"
    escaped = name.replace("-", r"\x2d")
    return rf"machine.slice/machine-qemu\x2d1\x2d{escaped}.scope"


def _lines(scope: str, contender: Contender) -> Iterator[str]:
    """Yield the input of spin_v2.sh: a line for each thread."""
    threads = [cpus for cpus, count in contender.threads.items() for _ in range(count)]
    for number, cpus in enumerate(threads):
        yield f"{scope} {contender.weight} libvirt/vcpu{number} {','.join(map(str, sorted(cpus)))}"


def _kernel() -> str:
    """Return the newest kernel of the package."""
    kernels = Path("/boot").glob("vmlinuz-*-cloud-amd64")
    return str(max(kernels, key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]))


def _initrd(folder: Path, lines: list[str]) -> str:
    """Return an initramfs with busybox and spin_v2.sh."""
    root, initrd = folder / "initramfs", folder / "initrd"
    for name in ("bin", "dev", "proc", "cgroup"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    shutil.copy(Path(__file__).with_name("spin_v2.sh"), root / "init")
    (root / "init").chmod(0o755)
    (root / "threads").write_text("".join(f"{line}\n" for line in lines))
    names = "".join(f"{path.relative_to(root)}\n" for path in root.rglob("*"))
    command = ["cpio", "--create", "--format=newc", "--quiet", "-F", str(initrd)]
    subprocess.run(command, cwd=root, input=names, text=True, check=True)
    return str(initrd)


def _wait(console: Path, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while True:
        text = console.read_text(errors="replace")
        if "\ndone" in text:
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.5)


def _windows(text: str, scopes: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Yield the CPUs that each guest received between two readings on the console."""
    for before, after in pairwise(text.split("uptime ")[1:]):
        (start, early), (end, late) = _reading(before), _reading(after)
        yield {
            name: (late[scope] - early[scope]) / 1e6 / (end - start)
            for scope, name in scopes.items()
        }


def _reading(text: str) -> tuple[float, dict[str, int]]:
    uptime, *lines = text.splitlines()
    pairs = [line.split(" ") for line in lines if ".slice" in line]
    return float(uptime), {scope: int(usage) for scope, usage in pairs}
