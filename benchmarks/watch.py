"""The CPU time that ``cpu-tiers host watch`` takes on a host with 300 guests.

Each guest is a process with an emulator thread and two threads that have the names of vCPUs and
sleep most of the time, in a cgroup of its own if this user may create cgroups. The figures are CPU
seconds of this process for each reading and for each answer to Prometheus. Needs gcc.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from prometheus_client import CollectorRegistry, generate_latest

from cpu_tiers.conf.read import read_config
from cpu_tiers.inventory import Host
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import find_hierarchy
from cpu_tiers.tools.host.watch import WatchCollector
from cpu_tiers.tools.host.watched_host import WatchedHost
from cpu_tiers.tools.libvirt.connection import RunningDomain
from cpu_tiers.tools.tiers.tier import Tier

GUESTS, VCPUS, ROUNDS = 300, 2, 20
INTERVAL, SCRAPE = 10.0, 15.0
GOAL = 0.01

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *vcpu(void *n) {
    char name[16];
    snprintf(name, sizeof name, "CPU %ld/KVM", (long)n);
    pthread_setname_np(pthread_self(), name);
    for (;;) usleep(500000);
}
int main(int argc, char **argv) {
    pthread_t thread;
    for (long n = 0; n < atol(argv[3]); n++) pthread_create(&thread, NULL, vcpu, (void *)n);
    for (;;) pause();
}
"""


@contextmanager
def guests(folder: Path, uuids: Collection[str]) -> Iterator[None]:
    """Run a process for each guest, and give each process a cgroup if possible."""
    program = folder / "qemu-asleep"
    source = folder / "qemu.c"
    source.write_text(PROGRAM)
    subprocess.run(["/usr/bin/gcc", "-pthread", "-o", program, source], check=True)
    mount = Path(find_hierarchy(Files()).mount)
    with ExitStack() as stack:
        for number, uuid in enumerate(uuids):
            process = subprocess.Popen([program, "-uuid", uuid, str(VCPUS)])
            cgroup = mount / f"qemu-{number}-{uuid}.libvirt-qemu"
            try:
                (cgroup / "emulator").mkdir(parents=True)
                (cgroup / "emulator" / "cgroup.procs").write_text(str(process.pid))
            except OSError as error:
                print(f"without cgroups of the guests: {error}", file=sys.stderr)
            # In the reverse order: the process ends first.
            stack.callback(_remove, cgroup)
            stack.callback(process.wait)
            stack.callback(process.kill)
        time.sleep(1)
        yield


def _remove(cgroup: Path) -> None:
    # The kernel removes the process from its cgroup some time after its end.
    deadline = time.monotonic() + 1
    for folder in (cgroup / "emulator", cgroup):
        while folder.exists() and time.monotonic() < deadline:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.05)


def describe(uuids: Collection[str]) -> Iterator[RunningDomain]:
    """Yield the domains as libvirt would describe them."""
    for uuid in uuids:
        xml = (
            f"<domain><name>instance-{uuid[:8]}</name><uuid>{uuid}</uuid><vcpu>{VCPUS}</vcpu>"
            "<cputune><shares>200</shares></cputune></domain>"
        )
        yield RunningDomain(name=uuid, xml=xml.encode(), shares=None)


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, the average of many rounds."""
    start = time.process_time()
    for _ in range(ROUNDS):
        call()
    return (time.process_time() - start) / ROUNDS


def main() -> int:
    """Print the figures; return 1 if the goal is missed."""
    topology = HostTopology(
        arch="x86_64",
        cells=(NumaCell(id=0, cpus=CpuSet(range(64)), memory_kb=2**28),),
    )
    uuids = [str(uuid4()) for _ in range(GUESTS)]
    host, conf = Host(name="this host", topology=topology), read_config(["/dev/null"])
    watched = WatchedHost(host, conf, describe, [Tier.parse("gold", "100", 1, where="gold")])
    registry = CollectorRegistry()
    registry.register(WatchCollector(lambda: watched.reading))
    with tempfile.TemporaryDirectory() as folder, guests(Path(folder), uuids):
        start = time.process_time()
        watched.read()
        first = time.process_time() - start
        assert len(watched.reading.guests) == GUESTS, len(watched.reading.guests)
        reading = cpu_seconds(watched.read)
        answer = cpu_seconds(lambda: generate_latest(registry))
        assert len(watched.reading.guests) == GUESTS, len(watched.reading.guests)
        size = len(generate_latest(registry))
    share = reading / INTERVAL + answer / SCRAPE
    figures = {
        "guests": GUESTS,
        "first_reading_cpu_seconds": round(first, 3),
        "reading_cpu_seconds": round(reading, 4),
        "answer_cpu_seconds": round(answer, 4),
        "answer_bytes": size,
        "share_of_a_cpu": round(share, 5),
    }
    print(json.dumps(figures, indent=2))
    return int(share > GOAL)


if __name__ == "__main__":
    sys.exit(main())
