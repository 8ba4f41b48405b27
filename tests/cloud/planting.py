"""Plants a busy process beside a guest, or nothing, and measures the guest's vCPUs meanwhile.

``planting.py UUID SECONDS [WEIGHT]``: a process in a control group beside that of the guest, with
this weight, spins on CPU 0 for so many seconds, between two seconds of quiet. Prints the time and
the CPU time of the vCPUs each fifth of a second, both in seconds: JSON.

Runs in the cloud as ``python3 -m tests.cloud.planting``, with the Python of its services. Uses
nothing of cpu-tiers.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cloud.guests import groups_of

QUIET = 2.0
STEP = 0.2
STOP = Path("/run/planting.stop")
"""If the file appears, nothing more is measured."""

_VCPU = re.compile(r"CPU \d+/(?:KVM|TCG)")


def pid_of(uuid: str) -> str:
    """Return the process of a guest."""
    for each in Path("/run/libvirt/qemu").glob("*.pid"):
        pid = each.read_text().strip()
        if f"uuid\0{uuid}" in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise SystemExit(f"no guest {uuid}")


def ran(pid: str) -> float:
    """Return the CPU time of the vCPUs."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    vcpus = [task for task in tasks if _VCPU.match((task / "comm").read_text())]
    return sum(int((vcpu / "schedstat").read_text().split()[0]) for vcpu in vcpus) / 1e9


def sample(pid: str, seconds: float, samples: list[tuple[float, float]]) -> None:
    """Read the clock and the CPU time for some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not STOP.exists():
        samples.append((time.monotonic(), ran(pid)))
        time.sleep(STEP)


@contextmanager
def busy_process(pid: str, weight: str) -> Iterator[None]:
    """Have a process that spins beside a guest."""
    own = next(each for each in groups_of(pid) if list(each.glob("cpu.[sw][he]*")))
    group = own.with_name("planted.service")
    group.mkdir()
    name = "cpu.shares" if (group / "cpu.shares").exists() else "cpu.weight"
    (group / name).write_text(weight)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as process:
        os.sched_setaffinity(process.pid, {0})
        (group / "cgroup.procs").write_text(str(process.pid))
        try:
            yield
        finally:
            process.kill()
    group.rmdir()


def main(uuid: str, seconds: str, weight: str = "") -> None:
    pid, samples = pid_of(uuid), list[tuple[float, float]]()
    sample(pid, QUIET, samples)
    if weight:
        with busy_process(pid, weight):
            sample(pid, float(seconds), samples)
    else:
        sample(pid, float(seconds), samples)
    sample(pid, QUIET, samples)
    print(json.dumps(samples))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
