"""Find conditions under which a guest does not get its floor although all weights are right. Pure.

Examples are a real-time thread of another guest, a dedicated CPU that a second guest may use, a
thread on other CPUs than the domain XML says, and a ``system.slice`` that is heavier than
``machine.slice``.
"""

from collections import defaultdict
from collections.abc import Iterator

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, Domain, GuestCgroup, HostCgroups
from cpu_tiers.tools.tiers.occupancy import Occupancy

# The numbers of the policies are those of sched(7), include/uapi/linux/sched.h in the kernel.
_BY_WEIGHT = (0, 3)
"""SCHED_OTHER and SCHED_BATCH: threads of these policies share CPUs by weight."""

REAL_TIME = {1: "SCHED_FIFO", 2: "SCHED_RR", 6: "SCHED_DEADLINE"}
_OTHERS = {5: "SCHED_IDLE", 7: "SCHED_EXT"}


LEAST_PART = 0.9
"""A guest whose floor is at least this part of its entitlement is no finding."""


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
    yield from _isolated(evidence, evidence.cgroups.isolated)
    for domain in evidence.host.domains:
        cgroup = evidence.cgroup(domain)
        if cgroup and cgroup.is_frozen:
            yield Finding.of_guest(Kind.FROZEN, domain, f"its cgroup {cgroup.path} is frozen")
        for thread, policy in sorted(cgroup.policies.items() if cgroup else ()):
            yield from _policy(domain, thread, policy, users)


def _isolated(evidence: Evidence, isolated: CpuSet) -> Iterator[Finding]:
    """Yield the isolated CPUs over which vCPUs float: there, the load balancer moves no thread."""
    floating = [
        (domain, cpus & isolated)
        for domain in evidence.host.domains
        for cpus in {evidence.host.present(each) for each in domain.vcpu_sets}
        if len(cpus) > 1 and cpus & isolated
    ]
    if floating:
        names = _three(sorted({domain.name for domain, _ in floating}))
        cpus = CpuSet(cpu for _, shared in floating for cpu in shared)
        text = f"vCPUs of {names} float over these isolated CPUs"
        yield Finding(kind=Kind.ISOLATED, where=f"CPU {cpus}", found=text)


def _users(host: Occupancy) -> dict[int, set[str]]:
    """Return the names of the guests on each CPU, by the CPU sets of their vCPUs."""
    users = defaultdict[int, set[str]](set)
    for domain in host.domains:
        for cpus in set(domain.vcpu_sets):
            for cpu in host.cpus if cpus is None else cpus:
                users[cpu].add(domain.name)
    return users


def _shared_cpus(evidence: Evidence, users: dict[int, set[str]]) -> Iterator[Finding]:
    for domain in evidence.host.domains:
        pinned = {cpus for cpus in domain.vcpu_sets if cpus and evidence.is_dedicated(cpus)}
        dedicated = CpuSet(cpu for cpus in pinned for cpu in cpus)
        crowded = CpuSet(cpu for cpu in dedicated if users[cpu] != {domain.name})
        if crowded:
            text = f"pinned to CPU {crowded}, on which {_names(crowded, users, domain)} may run"
            yield Finding.of_guest(Kind.SHARED_CPU, domain, text)


def _names(cpus: CpuSet, users: dict[int, set[str]], excluded: Domain) -> str:
    return _three(sorted({name for cpu in cpus for name in users[cpu]} - {excluded.name}))


def _three(names: list[str]) -> str:
    """Return three names: a host has hundreds of guests, and all of them may float over a CPU."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _outweighed(cgroups: HostCgroups) -> Iterator[Finding]:
    """Yield each cgroup above guests that has a heavier sibling, or less than the default weight.

    A process in the parent, and each new cgroup in the parent, has the default weight.
    """
    for path in cgroups.above_guests:
        parent, weight = path.rpartition("/")[0], cgroups.above[path]
        heavier = [
            f"its sibling {sibling} has weight {cgroups.above[sibling]}"
            for sibling in cgroups.heavier_siblings(path)
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
    name = (REAL_TIME | _OTHERS).get(policy, f"policy {policy}")
    text = f"thread {thread!r} is {name}"
    if policy not in (*_BY_WEIGHT, *REAL_TIME):
        yield Finding.of_guest(Kind.SCHEDULER, domain, text)
    # Real-time vCPUs are what hw:cpu_realtime gives; on CPUs of their own they harm nobody.
    elif policy in REAL_TIME and _meets_other_guests(domain, thread, users):
        text = f"{text}, on CPUs that other guests use"
        yield Finding.of_guest(Kind.REAL_TIME, domain, text)


def _meets_other_guests(domain: Domain, thread: str, users: dict[int, set[str]]) -> bool:
    """Tell whether a thread of a guest may run on a CPU that another guest uses.

    QEMU names the thread of vCPU 0 ``CPU 0/KVM``. A thread of any other name is an emulator
    thread.
    """
    number = thread.removeprefix("CPU ").partition("/")[0]
    sets = domain.vcpu_sets
    is_vcpu = thread.startswith("CPU ") and number.isdigit() and int(number) < len(sets)
    cpus = sets[int(number)] if is_vcpu else domain.emulator_set
    return any(users.get(cpu, set()) - {domain.name} for cpu in (users if cpus is None else cpus))


def check_placing(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose XML contradicts nova.conf, or whose threads contradict the XML."""
    for domain in evidence.host.domains:
        if outside := "; ".join(_outside(evidence, domain)):
            yield Finding.of_guest(Kind.PINNING, domain, outside)
        cgroup = evidence.cgroup(domain)
        if cgroup is None:
            continue
        if changed := "; ".join(_changed(evidence, domain, cgroup)):
            yield Finding.of_guest(Kind.AFFINITY, domain, changed)
        for thread, path in sorted(cgroup.strays.items()):
            text = f"thread {thread!r} is in cgroup {path}, the guest has {cgroup.path}"
            yield Finding.of_guest(Kind.THREAD_CGROUP, domain, text)


def _outside(evidence: Evidence, domain: Domain) -> Iterator[str]:
    host = evidence.host
    for number, cpus in enumerate(domain.vcpu_sets):
        actual = CpuSet(host.present(cpus))
        if not (actual <= host.shared_cpus or evidence.is_dedicated(cpus)):
            shared = f"CPU {host.shared_cpus}" if host.shared_cpus else "no CPU"
            yield f"vCPU {number} may run on CPU {actual}, {shared} is for shared vCPUs"


def _changed(evidence: Evidence, domain: Domain, cgroup: GuestCgroup) -> Iterator[str]:
    # The numbers differ if a vCPU was plugged in after the XML was read.
    if len(cgroup.vcpus) != len(domain.vcpu_sets):
        return
    for vcpu, cpus in zip(cgroup.vcpus, domain.vcpu_sets, strict=True):
        # Without the cpuset controller, the kernel names the CPUs that might be plugged in, too.
        due, has = (CpuSet(evidence.host.present(each)) for each in (cpus, vcpu.cpus))
        if has != due:
            now = f"the kernel lets vCPU {vcpu.number} run on CPU {has}, its XML says CPU {due}"
            above = cgroup.path.rpartition("/")[0]
            yield f"{now} (see cpuset.cpus of {above})" if above and has < due else now


def check_overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding with the guest whose floor is farthest below its entitlement.

    The two figures also differ on a host with a single CPU set, because the kernel moves whole
    threads. Only guests count that share a part of their CPUs.
    """
    host = evidence.host
    entitlements, sharing = host.figures(), _guests_that_share_a_part(host)
    if all(entitlements[d.name].entitlement == len(d.vcpu_sets) for d in host.domains):
        return  # each vCPU can have a CPU
    parts = {name: entitlements[name].floor / entitlements[name].entitlement for name in sharing}
    low = sorted((name for name in sharing if parts[name] < LEAST_PART), key=parts.__getitem__)
    if low:
        worst, more = entitlements[low[0]], len(low) - 1
        text = (
            f"CPU sets overlap: guest {low[0]} has an entitlement of"
            f" {float(worst.entitlement):.2f} CPUs and a floor of {float(worst.floor):.2f}"
        )
        text += f"; other guests like it: {more}" if more else ""
        yield Finding(kind=Kind.OVERLAP, where="host", found=text)


def _guests_that_share_a_part(host: Occupancy) -> list[str]:
    """Return the guests with a CPU set that another CPU set overlaps without being equal."""
    sets = {domain.name: set(map(host.present, domain.vcpu_sets)) for domain in host.domains}
    all_sets = frozenset[frozenset[int]]().union(*sets.values())
    overlapping = {
        cpus for cpus in all_sets for other in all_sets if cpus != other and cpus & other
    }
    return [name for name, cpus in sets.items() if cpus & overlapping]
