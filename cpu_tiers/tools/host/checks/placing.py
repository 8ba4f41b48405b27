"""Find threads of guests on other CPUs, or in other cgroups, than the floors assume. Pure."""

from collections.abc import Iterator

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain, GuestCgroup
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind


def check_placing(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose XML does not fit nova.conf, or whose threads do not fit the XML."""
    for domain in evidence.host.domains:
        where = f"guest {domain.name}"
        for kind, text in _deviations(evidence, domain, evidence.cgroup(domain)):
            yield Finding(kind=kind, where=where, found=text, uuid=domain.uuid)


def _deviations(
    evidence: Evidence, domain: Domain, cgroup: GuestCgroup | None
) -> Iterator[tuple[Kind, str]]:
    if outside := "; ".join(_outside(evidence, domain)):
        yield Kind.PINNING, outside
    if cgroup is None:
        return
    if changed := "; ".join(_changed(evidence, domain, cgroup)):
        yield Kind.AFFINITY, changed
    for thread, path in sorted(cgroup.strays.items()):
        text = f"thread {thread!r} is in cgroup {path}, the guest has {cgroup.path}"
        yield Kind.THREAD_CGROUP, text


def _outside(evidence: Evidence, domain: Domain) -> Iterator[str]:
    """Yield vCPUs that are neither dedicated nor on shared CPUs alone, by nova.conf."""
    host = evidence.host
    for number, cpus in enumerate(domain.vcpu_sets):
        actual = _present(evidence, cpus)
        if not (actual <= host.shared_cpus or evidence.is_dedicated(cpus)):
            shared = f"CPU {host.shared_cpus}" if host.shared_cpus else "no CPU"
            yield f"vCPU {number} may run on CPU {actual}, {shared} is for shared vCPUs"


def _changed(evidence: Evidence, domain: Domain, cgroup: GuestCgroup) -> Iterator[str]:
    """Yield vCPUs that may run on other CPUs than the XML says."""
    # The numbers differ if a vCPU was plugged in after the XML was read.
    if len(cgroup.vcpus) != len(domain.vcpu_sets):
        return
    for vcpu, cpus in zip(cgroup.vcpus, domain.vcpu_sets, strict=True):
        due = _present(evidence, cpus)
        if vcpu.cpus != due:
            yield (
                f"the kernel lets vCPU {vcpu.number} run on CPU {vcpu.cpus}, its XML says"
                f" CPU {due}"
            )


def _present(evidence: Evidence, cpus: CpuSet | None) -> CpuSet:
    """Return the CPUs of a set that the host has; ``None`` stands for all CPUs."""
    return evidence.host.cpus if cpus is None else CpuSet(evidence.host.cpus & cpus)
