"""The weights in XML and kernel, against those that guests must have."""

from collections.abc import Iterator

from cpu_tiers.guest.audit.evidence import Evidence, due_weight
from cpu_tiers.guest.audit.finding import Finding, Kind
from cpu_tiers.model.cgroup import DEFAULT_WEIGHT, WEIGHTS, GuestCgroup, HostCgroups
from cpu_tiers.model.domain import Domain


def check_weights(evidence: Evidence) -> Iterator[Finding]:
    """Yield what is wrong with the weights of guests."""
    domains = evidence.host.domains
    tiers = sum(due_weight(domain) is not None for domain in domains)
    for domain in domains:
        if due_weight(domain) is None and tiers:
            found = f"it has no tier; guests that have one: {tiers}"
            yield _finding(Kind.UNTIERED, domain, found)
        cgroup = evidence.cgroups and evidence.cgroups.guests.get(domain.uuid or "")
        wrong = [*_in_xml(domain)]
        if evidence.cgroups and cgroup:
            yield from _unusable(domain, evidence.cgroups, cgroup)
            wrong += _in_kernel(domain, evidence.cgroups, cgroup)
        if wrong:
            weight = due_weight(domain)
            yield _finding(Kind.WEIGHT, domain, "; ".join(wrong), weight=weight)


def _in_xml(domain: Domain) -> Iterator[str]:
    due = due_weight(domain)
    if domain.shares != due:
        yield f"its XML has {_weight(domain.shares)}, its flavor {_weight(due)}"


def _in_kernel(domain: Domain, host: HostCgroups, cgroup: GuestCgroup) -> Iterator[str]:
    due = due_weight(domain) or DEFAULT_WEIGHT[host.version]
    if cgroup.weight not in (None, due) and due in WEIGHTS[host.version]:
        yield f"its cgroup has {_weight(cgroup.weight)}, it must have {due}"


def _unusable(domain: Domain, host: HostCgroups, cgroup: GuestCgroup) -> Iterator[Finding]:
    if cgroup.weight is None:
        yield _finding(Kind.NO_WEIGHT, domain, "it has no cgroup with a weight of its own")
    due, allowed = due_weight(domain), WEIGHTS[host.version]
    if due is not None and due not in allowed:
        found = (
            f"it must have {due}, cgroup v{host.version} takes {allowed[0]} to {allowed[-1]}"
            f" and has {_weight(cgroup.weight)}"
        )
        yield _finding(Kind.WEIGHT_RANGE, domain, found)


def _finding(kind: Kind, domain: Domain, found: str, weight: int | None = None) -> Finding:
    return Finding(
        kind=kind, where=f"guest {domain.name}", found=found, uuid=domain.uuid, weight=weight
    )


def _weight(weight: int | None) -> str:
    return "none" if weight is None else str(weight)
