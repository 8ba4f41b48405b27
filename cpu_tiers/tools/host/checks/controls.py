"""Find settings of cgroups that change what a weight is worth. Pure.

The settings are quotas, ``cpu.idle``, the weights inside of the cgroup of a guest, and the
weights of cgroups beside the guests.
"""

import re
from collections.abc import Iterator

from cpu_tiers.model.domain import DEFAULT_WEIGHT, Domain, HostCgroups
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind

_QUOTA = {"vcpu": "quota", "emulator": "emulator_quota", "iothread": "iothread_quota"}
"""The element of the XML that limits a cgroup in the cgroup of a guest, by its name."""


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
        guest = next((one for one in _upwards(path) if one in domains), None)
        domain = None if guest is None else domains[guest]
        yield from _limits(cgroups, path, domain, path.removeprefix(guest or ""))
    for domain in domains.values():
        yield from _inner(evidence, domain, cgroups)
    for path, weight in sorted(cgroups.beside.items()):
        yield _foreign(cgroups, path, weight)


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


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
        due = None if domain is None else domain.quotas.get(_element(inside))
        if quota != due:
            allowed = "no quota" if due is None else f"a quota of {due} us"
            expected = "" if domain is None else f", its XML has {allowed}"
            text = f"cgroup {path} has a quota of {quota} us in each {period} us{expected}"
            yield Finding(kind=Kind.QUOTA, where=where, found=text, uuid=uuid)
    if path in cgroups.idle:
        text = f"cgroup {path} has cpu.idle 1"
        yield Finding(kind=Kind.IDLE, where=where, found=text, uuid=uuid)


def _element(inside: str) -> str:
    """Return the element of the XML that limits a cgroup of a guest."""
    name = re.sub("[0-9]+$", "", inside.rpartition("/")[2])
    return _QUOTA.get(name, "global_quota")


def _inner(evidence: Evidence, domain: Domain, cgroups: HostCgroups) -> Iterator[Finding]:
    """Yield a guest in which a vCPU or the emulator has a weight of its own."""
    cgroup, default = evidence.cgroup(domain), DEFAULT_WEIGHT[cgroups.version]
    inner = sorted(cgroup.inner_weights.items()) if cgroup else []
    # The kernel shows another weight while cpu.idle is on, which is a finding of its own.
    odd = [
        f"{name} has weight {weight}"
        for name, weight in inner
        if cgroup and weight != default and f"{cgroup.path}/{name}" not in cgroups.idle
    ]
    if odd:
        text = f"in its cgroup {', '.join(odd)}; the default weight is {default}"
        where = f"guest {domain.name}"
        yield Finding(kind=Kind.INNER_WEIGHT, where=where, found=text, uuid=domain.uuid)


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
