"""What no host of a cloud could serve, even without any server. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from cpu_tiers.errors import Fault
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.reasons import ClaimLimit, HostReason, Lack, Reasons, named


def hosts_of(cloud: SimulatedCloud) -> Mapping[str, str]:
    """Return the names of the trees that have CPUs or memory, by the uuid of the root provider."""
    return {
        reach.root: reach.providers[0].state.name
        for reach in cloud.reaches
        if any(name in p.stocks for p in reach.own() for name in (VCPU, PCPU, MEMORY_MB))
    }


def never_served(
    where: str, queries: Sequence[CandidateQuery], cloud: SimulatedCloud
) -> list[Fault]:
    """Return why no host could ever take a server; empty if a host could.

    :param where: the name of the flavor in a fault.
    :param queries: the queries for the server. A host that serves any of them is enough.
    :param cloud: without the allocations of servers.
    """
    reasons = Reasons(cloud, queries)
    hosts = hosts_of(cloud)
    if any(reasons.is_served(root) for root in hosts):
        return []
    found = {name: reasons.of(root) for root, name in hosts.items()}
    common = [n for n in reasons.names if all(n in reason.lacks for reason in found.values())]
    if not common:
        return list(_nearest(where, found))
    return [_common(where, name, reasons.asked(name), found) for name in common]


def _common(where: str, name: str, asked: int, reasons: Mapping[str, HostReason]) -> Fault:
    """Return the fault of a constraint that no host meets."""
    where = f"{where}, {name}"
    if not asked:
        return Fault(where=where, given="required", allowed=_unmet(name))
    limits, amounts = [], []
    for host, reason in reasons.items():
        lack = reason.lacks[name]
        if isinstance(lack, ClaimLimit):
            limits.append((abs(lack.asked - lack.value), host, lack))
        else:
            amounts.append((lack, host))
    if limits:
        _, host, limit = min(limits)
        allowed = f"no host gives it in one claim: {limit.limit} {limit.value} (host {host})"
        return Fault(where=where, given=f"requests {limit.asked}", allowed=allowed)
    lack, host = min(amounts)
    most = asked - lack
    allowed = f"no host has more than {most} (host {host})" if most > 0 else "no host has enough"
    return Fault(where=where, given=f"requests {asked}", allowed=allowed)


def _unmet(name: str) -> str:
    if name.startswith("!"):
        return f"every host has the trait {name[1:]}"
    return "no host meets it" if " " in name or "=" in name else "no host has this trait"


def _nearest(where: str, reasons: Mapping[str, HostReason]) -> Iterator[Fault]:
    """Yield a fault with what the nearest host lacks."""
    host, reason = min(reasons.items(), key=lambda item: (len(item[1].lacks), item[0]))
    parts = ", ".join(_part(name, lack) for name, lack in reason.lacks.items())
    yield Fault(
        where=where,
        given="no host has all that the flavor requests",
        allowed=f"host {host} lacks least: {parts}",
    )


def _part(name: str, lack: Lack) -> str:
    return f"{lack} {name}" if isinstance(lack, int) and lack > 1 else named(name, lack)
