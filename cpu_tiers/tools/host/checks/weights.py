"""Compare weights and allocated shares with what guests must have. Pure.

What a weight is worth depends on quotas, ``cpu.idle``, the weights inside of the cgroup of a
guest, and the weights of cgroups beside the guests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.cloud_model.consumers import Consumers
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer, SnapshotServers
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.host.checks.guest_weight import due_weight, right_weights
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, WEIGHTS, Domain, GuestCgroup, HostCgroups
from cpu_tiers.tools.tiers.tier import has_novas_old_default, requested_amounts, shares_faults

_QUOTA = {"vcpu": "quota", "emulator": "emulator_quota", "iothread": "iothread_quota"}
"""The element of the XML that limits a cgroup in the cgroup of a guest, by its name."""


def check_weights(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests with a wrong weight, an impossible weight, no weight, a faulty tier or no tier.

    A guest whose cgroup was not found is checked by its XML only.
    """
    domains = evidence.host.domains
    tiers = sum(due_weight(domain) is not None for domain in domains)
    for domain in domains:
        faults = shares_faults(domain)
        for fault in faults:
            yield Finding.of_guest(Kind.FLAVOR, domain, str(fault))
        # On a host without tiers the default weight of all guests is right, also Nova's old one.
        if evidence.due_weight(domain) is None and tiers and not faults:
            text = f"it has no tier{_default(evidence)}; guests of this host with a tier: {tiers}"
            yield Finding.of_guest(Kind.UNTIERED, domain, text)
        due, cgroup = evidence.due_weight(domain), evidence.cgroup(domain)
        if due is None and not tiers and has_novas_old_default(domain):
            continue
        deviations = [*_in_xml(domain, due)]
        if evidence.cgroups and cgroup:
            yield from _unusable(domain, due, evidence.cgroups, cgroup)
            deviations += _in_kernel(domain, due, evidence.cgroups, cgroup)
        if deviations:
            is_old = due is None and has_novas_old_default(domain)
            weight = evidence.host.default_weight if is_old else due
            yield Finding.of_guest(Kind.WEIGHT, domain, "; ".join(deviations), weight=weight)


def _default(evidence: Evidence) -> str:
    """Return the default weight of this host in words, and the default of the other version."""
    if evidence.cgroups is None:
        return ""
    version = evidence.cgroups.version
    ((other, weight),) = ((v, w) for v, w in DEFAULT_WEIGHT.items() if v != version)
    own_default = DEFAULT_WEIGHT[version]
    return f" and the default weight of cgroup v{version}, {own_default} (v{other}: {weight})"


def _in_xml(domain: Domain, due: int | None) -> Iterator[str]:
    if domain.shares not in right_weights(domain, due):
        whose = (
            "its flavor" if due == due_weight(domain) else "nova.conf gives a guest without a tier"
        )
        old = ", Nova's default before Nova 26" if has_novas_old_default(domain) else ""
        yield f"its XML has {_weight(domain.shares)}{old}, {whose} {_weight(due)}"


def _in_kernel(
    domain: Domain, due: int | None, host: HostCgroups, cgroup: GuestCgroup
) -> Iterator[str]:
    right = (None, *right_weights(domain, due))
    due = due or DEFAULT_WEIGHT[host.version]
    # A due weight out of range cannot be in the cgroup; _unusable reports it. With cpu.idle, the
    # kernel shows another weight and refuses each; check_controls reports that.
    if cgroup.path in host.idle:
        return
    if cgroup.weight not in (due, *right) and due in WEIGHTS[host.version]:
        yield f"its cgroup has {_weight(cgroup.weight)}, it must have weight {due}"


def _unusable(
    domain: Domain, due: int | None, host: HostCgroups, cgroup: GuestCgroup
) -> Iterator[Finding]:
    if cgroup.weight is None:
        text = "it has no cgroup with a weight of its own"
        if cgroup.foreign_path:
            text += f": its process is in cgroup {cgroup.foreign_path}"
        yield Finding.of_guest(Kind.NO_WEIGHT, domain, text)
    allowed = WEIGHTS[host.version]
    if due is not None and due not in allowed:
        text = (
            f"it must have weight {due}, cgroup v{host.version} allows {allowed[0]} to"
            f" {allowed[-1]}; its cgroup has {_weight(cgroup.weight)}"
        )
        yield Finding.of_guest(Kind.WEIGHT_RANGE, domain, text)


def _weight(weight: int | None) -> str:
    return "no weight" if weight is None else f"weight {weight}"


def check_claims(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose allocation differs from their request, and an overcommitted host.

    Yield nothing if Placement was not queried, and no guests if the host reports no VCPU_SHARES.
    """
    allocated, host = evidence.allocated, evidence.host
    if allocated is None:
        return
    # All consumers count, also servers that are shut off: their resources stay allocated.
    for excess in allocated.excesses:
        text = f"{excess.used} {excess.resource_class} are allocated, of {excess.capacity}"
        where = f"provider {excess.provider}"
        yield Finding(kind=Kind.OVERCOMMITTED, where=where, found=text)
    if allocated.capacity is None:
        return
    for domain in host.domains:
        requested = requested_amounts(domain, _shared_cpus(evidence, domain))[VCPU_SHARES]
        allocation = allocated.held.get(domain.uuid or "")
        if requested != (allocation or 0):
            amount = "nothing on this host" if allocation is None else str(allocation)
            text = f"it requests {requested} {VCPU_SHARES}, and {amount} is allocated to it"
            yield _with_place(Finding.of_guest(Kind.CLAIM, domain, text), allocated.elsewhere)


def _with_place(finding: Finding, places: Mapping[str, Sequence[str]]) -> Finding:
    """Return the finding about a guest with the providers that it holds, and what mends that.

    :param places: the names of the providers of which guests hold something.
    """
    server = finding.uuid or ""
    elsewhere = places.get(server)
    if not elsewhere:
        return finding
    servers = {server: SnapshotServer(name=server, host="here")}
    said = SnapshotServers(servers=servers, unread=frozenset())
    part, *_ = Consumers(said, {"here": "here"}).parts(server, elsewhere)
    return replace(
        finding,
        found=f"{finding.found}; Placement has it on {', '.join(elsewhere)}",
        do="if the guest is migrating, wait until the migration ends; if not, its allocations are"
        f" {part.role}: {part.mend(())}",
    )


def _shared_cpus(evidence: Evidence, domain: Domain) -> CpuSet:
    """Return the CPUs on which the vCPUs of a guest are shared vCPUs.

    Without CPU sets in nova.conf every CPU is shared and dedicated at the same time. A guest with
    pinned vCPUs only then looks shared by its CPU sets, but requests no shares.
    """
    dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
    return CpuSet() if dedicated and all(dedicated) else evidence.host.shared_cpus


def check_controls(evidence: Evidence) -> Iterator[Finding]:
    """Yield the settings of cgroups in, of, above and beside guests that void the floors."""
    cgroups = evidence.cgroups
    if cgroups is None:
        return
    domains = {
        cgroup.path: domain
        for domain in evidence.host.domains
        if (cgroup := evidence.cgroup(domain)) is not None
    }
    for path in sorted({*cgroups.quotas, *cgroups.idle}):
        guest = path
        while guest and guest not in domains:
            guest = guest.rpartition("/")[0]
        yield from _limits(cgroups, path, domains.get(guest), path.removeprefix(guest))
    for domain in domains.values():
        yield from _inner(cgroups, domain)
    for path, inside in cgroups.partitions.items():
        # The weights of the guests inside count only inside.
        if cgroups.above[path] != inside and path not in cgroups.idle:
            text = (
                f"it has weight {cgroups.above[path]} beside guests, and its guests have weight"
                f" {inside} together"
            )
            yield Finding(kind=Kind.PARTITION, where=f"cgroup {path}", found=text)
    for path, weight in sorted(cgroups.beside.items()):
        yield _foreign(cgroups, path, weight)


def _limits(
    cgroups: HostCgroups, path: str, domain: Domain | None, inside: str
) -> Iterator[Finding]:
    """Yield a quota that is not in the XML, and ``cpu.idle``.

    :param inside: the path of the cgroup below the cgroup of the guest.
    """
    where = f"cgroup {path}" if domain is None else f"guest {domain.name}"
    uuid = None if domain is None else domain.uuid
    if path in cgroups.quotas:
        quota, period = cgroups.quotas[path]
        name = re.sub("[0-9]+$", "", inside.rpartition("/")[2])
        due = None if domain is None else domain.quotas.get(_QUOTA.get(name, "global_quota"))
        if quota != due:
            allowed = "no quota" if due is None else f"a quota of {due} us"
            expected = "" if domain is None else f", its XML has {allowed}"
            text = f"cgroup {path} has a quota of {quota} us in each {period} us{expected}"
            yield Finding(kind=Kind.QUOTA, where=where, found=text, uuid=uuid)
    if path in cgroups.idle:
        text = f"cgroup {path} has cpu.idle 1"
        yield Finding(kind=Kind.IDLE, where=where, found=text, uuid=uuid)


def _inner(cgroups: HostCgroups, domain: Domain) -> Iterator[Finding]:
    """Yield a guest in which a vCPU or the emulator has a weight of its own."""
    cgroup, default = cgroups.guests[domain.uuid or ""], DEFAULT_WEIGHT[cgroups.version]
    # The kernel shows another weight while cpu.idle is on, which is a finding of its own.
    odd = [
        f"{name} has weight {weight}"
        for name, weight in sorted(cgroup.inner_weights.items())
        if weight != default and f"{cgroup.path}/{name}" not in cgroups.idle
    ]
    if odd:
        text = f"in its cgroup {', '.join(odd)}; the default weight is {default}"
        yield Finding.of_guest(Kind.INNER_WEIGHT, domain, text)


def _foreign(cgroups: HostCgroups, path: str, weight: int) -> Finding:
    parent = path.rpartition("/")[0]
    guests = [
        guest.weight or 0
        for guest in cgroups.guests.values()
        if guest.path.rpartition("/")[0] == parent
    ]
    text = (
        f"it contains no guest and has weight {weight}; the {len(guests)} guests in {parent} have"
        f" weight {sum(guests)} together"
    )
    return Finding(kind=Kind.FOREIGN, where=f"cgroup {path}", found=text)
