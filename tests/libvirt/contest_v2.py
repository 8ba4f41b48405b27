"""Measure the contests on cgroup v2, inside a guest with a kernel of Debian.

Cgroups with the weights of the guests take the place of the guests. :file:`spin_v2.sh` makes the
cgroups in the layout that libvirt uses on a host with systemd. The guest is emulated. A slow CPU
does not matter: the scheduler divides slow and fast CPUs alike.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import libvirt

from cpu_tiers.guest.entitlement import Contender
from tests.libvirt.cgroup import cpu_cgroups, outweighing
from tests.libvirt.contest import running, threads
from tests.libvirt.contestants import SERVICE, Contest
from tests.libvirt.linux_guest import linux_elements, new_root, wait_until_done
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
    root, console = new_root(folder, "spin_v2.sh"), folder / "console"
    (root / "threads").write_text("".join(f"{line}\n" for line in lines))
    cpus = frozenset(range(_cpus(contenders.values())))
    guest = server("cgroup-v2", cpus=cpus, vcpus=len(cpus), extra_specs={}, memory_mb=256)
    settings = f"SETTLE={_SECONDS_TO_SETTLE} WINDOW={seconds} COUNT={count}"
    elements = linux_elements(root, console, settings)
    with running(connection, guest, {"kernel": lambda _: elements}, emulated=True) as domain:
        machines = cpu_cgroups(threads(domain)[0])[-1]
        with outweighing(machines):
            domain.resume()
            text = wait_until_done(console, _SECONDS_TO_BOOT + seconds * count)
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
