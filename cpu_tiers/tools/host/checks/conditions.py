"""Find conditions under which a guest does not get its floor although all weights are right.

Examples are a real-time thread of another guest, a dedicated CPU that a second guest
may use, and a ``system.slice`` that is heavier than ``machine.slice``.
"""

from collections import defaultdict
from collections.abc import Iterator

from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import DEFAULT_WEIGHT, Domain, HostCgroups
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind

# The numbers of the policies are those of sched(7), include/uapi/linux/sched.h in the kernel.
_BY_WEIGHT = (0, 3)
"""SCHED_OTHER and SCHED_BATCH: threads of these policies share CPUs by weight."""

REAL_TIME = {1: "SCHED_FIFO", 2: "SCHED_RR", 6: "SCHED_DEADLINE"}
_OTHERS = {5: "SCHED_IDLE", 7: "SCHED_EXT"}


def check_conditions(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each violated condition of the floors.

    Shared CPUs follow from domain XML. All other conditions need the cgroups of the host.
    """
    users = _users(evidence.host)
    yield from _shared_cpus(evidence, users)
    if evidence.cgroups is None:
        return
    yield from _outweighed(evidence.cgroups)
    if evidence.cgroups.sched_ext:
        text = f"the BPF scheduler {evidence.cgroups.sched_ext} is loaded"
        yield Finding(kind=Kind.SCHEDULER, where="host", found=text)
    for domain in evidence.host.domains:
        cgroup = evidence.cgroup(domain)
        for thread, policy in sorted(cgroup.policies.items() if cgroup else ()):
            yield from _policy(domain, thread, policy, users)


def _users(host: Occupancy) -> dict[int, set[str]]:
    """Return the names of the guests on each CPU, by the CPU sets of their vCPUs."""
    users = defaultdict[int, set[str]](set)
    for domain in host.domains:
        for cpus in set(domain.vcpu_sets):
            for cpu in host.cpus if cpus is None else cpus:
                users[cpu].add(domain.name)
    return users


def _shared_cpus(evidence: Evidence, users: dict[int, set[str]]) -> Iterator[Finding]:
    """Yield guests with a dedicated CPU that the vCPUs of another guest may use as well."""
    for domain in evidence.host.domains:
        pinned = {cpus for cpus in domain.vcpu_sets if cpus and evidence.is_dedicated(cpus)}
        dedicated = CpuSet(cpu for cpus in pinned for cpu in cpus)
        crowded = CpuSet(cpu for cpu in dedicated if users[cpu] != {domain.name})
        if crowded:
            text = f"pinned to CPU {crowded}, on which {_names(crowded, users, domain)} may run"
            where = f"guest {domain.name}"
            yield Finding(kind=Kind.SHARED_CPU, where=where, found=text, uuid=domain.uuid)


def _names(cpus: CpuSet, users: dict[int, set[str]], excluded: Domain) -> str:
    names = sorted({name for cpu in cpus for name in users[cpu]} - {excluded.name})
    # A host has hundreds of guests, and all of them may float over a CPU: name three.
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _outweighed(cgroups: HostCgroups) -> Iterator[Finding]:
    """Yield each cgroup above guests that has a heavier sibling, or less than the default weight.

    A process in the parent, and each cgroup that is made there, has the default weight.
    """
    above_guests = {
        "/".join(guest.path.split("/")[:depth])
        for guest in cgroups.guests.values()
        for depth in range(2, guest.path.count("/") + 1)
    }
    for path in sorted(above_guests & set(cgroups.above)):
        parent, weight = path.rpartition("/")[0], cgroups.above[path]
        heavier = [
            f"its sibling {sibling} has weight {sibling_weight}"
            for sibling, sibling_weight in cgroups.above.items()
            if sibling.rpartition("/")[0] == parent and sibling not in above_guests
            if sibling_weight > weight
        ]
        default = DEFAULT_WEIGHT[cgroups.version]
        # The kernel shows another weight while cpu.idle is on, which is a finding of its own.
        if not heavier and weight < default and path not in cgroups.idle:
            heavier = [f"a process beside it, in {parent or '/'}, has weight {default}"]
        for other in heavier:
            text = f"the guests' cgroup has weight {weight}, {other}"
            yield Finding(kind=Kind.OUTWEIGHED, where=f"cgroup {path}", found=text)


def _policy(
    domain: Domain, thread: str, policy: int, users: dict[int, set[str]]
) -> Iterator[Finding]:
    """Yield a finding if the scheduling policy of this thread ignores weights."""
    if policy in _BY_WEIGHT:
        return
    name = REAL_TIME.get(policy) or _OTHERS.get(policy) or f"policy {policy}"
    if policy in REAL_TIME:
        # Real-time vCPUs are what hw:cpu_realtime gives; on CPUs of their own they harm nobody.
        if not _meets_other_guests(domain, thread, users):
            return
        text = f"thread {thread!r} is {name}, on CPUs that other guests use"
        kind = Kind.REAL_TIME
    else:
        kind, text = Kind.SCHEDULER, f"thread {thread!r} is {name}"
    yield Finding(kind=kind, where=f"guest {domain.name}", found=text, uuid=domain.uuid)


def _meets_other_guests(domain: Domain, thread: str, users: dict[int, set[str]]) -> bool:
    """Tell whether a thread of a guest may run on a CPU that another guest uses.

    QEMU names the thread of vCPU 0 ``CPU 0/KVM``. A thread of any other name is an emulator
    thread.
    """
    number = thread.removeprefix("CPU ").partition("/")[0]
    sets = domain.vcpu_sets
    if thread.startswith("CPU ") and number.isdigit() and int(number) < len(sets):
        cpus = sets[int(number)]
    else:
        cpus = domain.emulator_set
    allowed_cpus = users if cpus is None else cpus
    return any(users.get(cpu, set()) - {domain.name} for cpu in allowed_cpus)
