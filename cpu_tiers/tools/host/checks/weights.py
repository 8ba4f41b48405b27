"""Compare the weights in domain XML and in the kernel with the weights that guests must have."""

from collections.abc import Iterator

from cpu_tiers.guest.tier import has_novas_old_default, shares_faults
from cpu_tiers.model.domain import DEFAULT_WEIGHT, WEIGHTS, Domain, GuestCgroup, HostCgroups
from cpu_tiers.tools.host.checks.evidence import Evidence, due_weight, right_weights
from cpu_tiers.tools.host.checks.finding import Finding, Kind


def check_weights(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests with a wrong weight, an impossible weight, no weight, a faulty tier or no tier.

    A guest whose cgroup was not found is checked by its XML only.
    """
    domains = evidence.host.domains
    tiers = sum(due_weight(domain) is not None for domain in domains)
    for domain in domains:
        faults = shares_faults(domain)
        for fault in faults:
            yield _finding(Kind.FLAVOR, domain, str(fault))
        # On a host without tiers the default weight of all guests is right, also Nova's old one.
        if evidence.due_weight(domain) is None and tiers and not faults:
            text = f"it has no tier{_default(evidence)}; guests of this host with a tier: {tiers}"
            yield _finding(Kind.UNTIERED, domain, text)
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
            yield _finding(Kind.WEIGHT, domain, "; ".join(deviations), weight=weight)


def _default(evidence: Evidence) -> str:
    """Return the default weight of this host in words, and the default of the other version."""
    if evidence.cgroups is None:
        return ""
    version = evidence.cgroups.version
    ((other, weight),) = ((v, w) for v, w in DEFAULT_WEIGHT.items() if v != version)
    own = DEFAULT_WEIGHT[version]
    return f" and the default weight of cgroup v{version}, {own} (v{other}: {weight})"


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
    # A due weight out of range cannot be in the cgroup; _unusable reports it.
    if cgroup.weight not in (due, *right) and due in WEIGHTS[host.version]:
        yield f"its cgroup has {_weight(cgroup.weight)}, it must have weight {due}"


def _unusable(
    domain: Domain, due: int | None, host: HostCgroups, cgroup: GuestCgroup
) -> Iterator[Finding]:
    """Yield a cgroup without a weight, and a due weight that the kernel cannot have."""
    if cgroup.weight is None:
        yield _finding(Kind.NO_WEIGHT, domain, "it has no cgroup with a weight of its own")
    allowed = WEIGHTS[host.version]
    if due is not None and due not in allowed:
        text = (
            f"it must have weight {due}, cgroup v{host.version} allows {allowed[0]} to"
            f" {allowed[-1]}; its cgroup has {_weight(cgroup.weight)}"
        )
        yield _finding(Kind.WEIGHT_RANGE, domain, text)


def _finding(kind: Kind, domain: Domain, text: str, weight: int | None = None) -> Finding:
    return Finding(
        kind=kind, where=f"guest {domain.name}", found=text, uuid=domain.uuid, weight=weight
    )


def _weight(weight: int | None) -> str:
    return "no weight" if weight is None else f"weight {weight}"
