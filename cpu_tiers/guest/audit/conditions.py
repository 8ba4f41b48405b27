"""What voids the guarantee although each guest has its weight."""

from collections import defaultdict
from collections.abc import Iterator

from cpu_tiers.guest.audit.evidence import Evidence
from cpu_tiers.guest.audit.finding import Finding, Kind
from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.model.cgroup import HostCgroups
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain

_BY_WEIGHT = (0, 3)
"""SCHED_OTHER and SCHED_BATCH, which share by weight (sched(7))."""

_REAL_TIME = {1: "SCHED_FIFO", 2: "SCHED_RR", 6: "SCHED_DEADLINE"}
_OTHERS = {5: "SCHED_IDLE", 7: "SCHED_EXT"}


def check_conditions(evidence: Evidence) -> Iterator[Finding]:
    """Yield them."""
    users = _users(evidence.host)
    yield from _shared_cpus(evidence, users)
    if evidence.cgroups is None:
        return
    yield from _outweighed(evidence.cgroups)
    if evidence.cgroups.sched_ext:
        found = f"the BPF scheduler {evidence.cgroups.sched_ext} is loaded"
        yield Finding(kind=Kind.SCHEDULER, where="host", found=found)
    for domain in evidence.host.domains:
        cgroup = evidence.cgroups.guests.get(domain.uuid or "")
        for thread, policy in sorted(cgroup.policies.items() if cgroup else ()):
            yield from _policy(domain, thread, policy, users)


def _users(host: Occupancy) -> dict[int, set[str]]:
    """Return the guests whose vCPUs may run on each CPU."""
    users = defaultdict[int, set[str]](set)
    for domain in host.domains:
        for cpus in set(domain.vcpu_sets):
            for cpu in host.cpus if cpus is None else cpus:
                users[cpu].add(domain.name)
    return users


def _shared_cpus(evidence: Evidence, users: dict[int, set[str]]) -> Iterator[Finding]:
    for domain in evidence.host.domains:
        pinned = {cpus for cpus in domain.vcpu_sets if cpus and evidence.is_dedicated(cpus)}
        alone = CpuSet(cpu for cpus in pinned for cpu in cpus)
        crowded = CpuSet(cpu for cpu in alone if users[cpu] != {domain.name})
        if crowded:
            found = f"pinned to CPU {crowded}, on which {_names(crowded, users, domain)} may run"
            where = f"guest {domain.name}"
            yield Finding(kind=Kind.SHARED_CPU, where=where, found=found, uuid=domain.uuid)


def _names(cpus: CpuSet, users: dict[int, set[str]], but: Domain) -> str:
    names = sorted({name for cpu in cpus for name in users[cpu]} - {but.name})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _outweighed(cgroups: HostCgroups) -> Iterator[Finding]:
    """Yield the slices of guests that others beside them outweigh."""
    ours = {
        "/".join(guest.path.split("/")[:depth])
        for guest in cgroups.guests.values()
        for depth in range(2, guest.path.count("/") + 1)
    }
    for path in sorted(ours & set(cgroups.above)):
        parent, weight = path.rpartition("/")[0], cgroups.above[path]
        for other, its in cgroups.above.items():
            if other.rpartition("/")[0] == parent and other not in ours and its > weight:
                found = f"the guests' cgroup has the weight {weight}, {other} beside it {its}"
                yield Finding(kind=Kind.OUTWEIGHED, where=f"cgroup {path}", found=found)


def _policy(
    domain: Domain, thread: str, policy: int, users: dict[int, set[str]]
) -> Iterator[Finding]:
    if policy in _BY_WEIGHT:
        return
    name = _REAL_TIME.get(policy) or _OTHERS.get(policy) or f"policy {policy}"
    if policy in _REAL_TIME:
        if not _in_company(domain, thread, users):
            return
        kind, found = Kind.REAL_TIME, f"thread {thread!r} is {name}, on CPUs that others use"
    else:
        kind, found = Kind.SCHEDULER, f"thread {thread!r} is {name}"
    yield Finding(kind=kind, where=f"guest {domain.name}", found=found, uuid=domain.uuid)


def _in_company(domain: Domain, thread: str, users: dict[int, set[str]]) -> bool:
    """Tell whether a thread, a vCPU unless named otherwise, may meet another guest."""
    number = thread.removeprefix("CPU ").partition("/")[0]
    sets = domain.vcpu_sets
    if thread.startswith("CPU ") and number.isdigit() and int(number) < len(sets):
        cpus = sets[int(number)]
    else:
        cpus = domain.emulator_set
    mine = users if cpus is None else cpus
    return any(users.get(cpu, set()) - {domain.name} for cpu in mine)
