"""Measure the CPU time of the own threads of QEMU, beside the CPU time of the vCPU.

A guest of one vCPU reads a file of this machine with direct I/O through virtio-blk, without a
pause. The threads of QEMU are in the cgroup of the guest. ``[libvirt] emulator_overhead_percent``
takes the result. The benchmark needs KVM and Debian packages (``bindep.txt``, profile libvirt);
``tox -e emulator-overhead`` runs it.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import libvirt

from tests.libvirt.cgroup import cpu_cgroups, outweighing
from tests.libvirt.contest import running, threads
from tests.libvirt.disk_load import devices, disk
from tests.libvirt.embedded import embedded
from tests.libvirt.servers import server

_SECONDS_TO_BOOT = 60

READS_KB = (4, 64)
WAYS = {
    "a thread of the pool (io=threads)": ("threads", 0),
    "the main thread (io=native)": ("native", 0),
    "an I/O thread (io=native)": ("native", 1),
}
"""By who serves the disk: how QEMU reads the file, and the number of the guest's I/O threads."""


@contextmanager
def reading(
    connection: libvirt.virConnect, folder: Path, kilobytes: int, io: str, iothreads: int
) -> Iterator[libvirt.virDomain]:
    """Yield a guest that reads its disk."""
    console = folder / "console"
    console.write_text("")
    elements = devices(disk(folder, kilobytes), console, io, iothreads)
    guest = server("reader", cpus=frozenset({0, 1}), extra_specs={}, memory_mb=64)
    plugins = {"disk": lambda _: elements}
    with running(connection, guest, plugins, emulated=False) as domain:
        (vcpu,) = threads(domain)
        with outweighing(cpu_cgroups(vcpu)[-1]):
            domain.resume()
            deadline = time.monotonic() + _SECONDS_TO_BOOT
            while "R" not in console.read_text():
                assert time.monotonic() < deadline, "the guest did not boot"
                time.sleep(0.5)
            yield domain


def window(domain: libvirt.virDomain, seconds: float) -> tuple[float, float, float]:
    """Return the CPUs of the vCPU, the CPUs of the other threads, and the reads per second."""
    start, before = time.monotonic(), _read(domain)
    time.sleep(seconds)
    elapsed, after = time.monotonic() - start, _read(domain)
    vcpu, everything, reads = (
        (late - early) / elapsed for early, late in zip(before, after, strict=True)
    )
    return vcpu, everything - vcpu, reads


def _read(domain: libvirt.virDomain) -> Sequence[float]:
    """Return the seconds of the vCPU and of the whole guest, and the number of reads."""
    (vcpu,) = threads(domain)
    ran = int(Path(f"/proc/{vcpu}/schedstat").read_text().split()[0])
    reads, *_ = domain.blockStats("vda")
    return ran / 1e9, domain.getCPUStats(True)[0]["cpu_time"] / 1e9, reads


def main() -> None:
    """Print the table, as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="length of a window")
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(["Served by", "A read", "Reads per second", "vCPU", "QEMU", "Overhead"])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, embedded(Path(name)) as connection:
        for way, (io, iothreads) in WAYS.items():
            for kilobytes in READS_KB:
                with reading(connection, Path(name), kilobytes, io, iothreads) as domain:
                    vcpu, qemu, reads = window(domain, options.seconds)
                overhead = f"{100 * qemu / vcpu:.0f} %"
                figures = (f"{reads:.0f}", f"{vcpu:.3f}", f"{qemu:.3f}", overhead)
                table.writerow([way, f"{kilobytes} KiB", *figures])
                sys.stdout.flush()


if __name__ == "__main__":
    main()
