"""Why no host could ever take a server, whatever servers are there. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from cpu_tiers.errors import Fault
from cpu_tiers.model.names import COMPUTE_NODE
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.reasons.host_reason import (
    ClaimLimit,
    HostReason,
    named,
    nearest,
    order_of_lack,
)
from cpu_tiers.tools.reasons.reasons import Reasons


def _hosts_for(reasons: Reasons, cloud: SimulatedCloud) -> Mapping[str, str]:
    """Return the names of the hosts that are meant for a server, by the root provider.

    A server without CPUs and memory is meant for the trees that have one of its classes: the nodes
    of Ironic.
    """
    with_cpus = {host.root: host.name for host in cloud.hosts if host.is_host}
    hosts = {r: name for r, name in with_cpus.items() if reasons.is_of_kind(r)}
    if hosts:
        return hosts
    nodes = {
        host.root: host.name
        for host in cloud.hosts
        if COMPUTE_NODE in host.providers[0].state.traits and reasons.is_of_kind(host.root)
    }
    return nodes or with_cpus


def never_served(
    where: str,
    queries: Sequence[CandidateQuery],
    cloud: SimulatedCloud,
    strangers: Container[str] = (),
) -> list[Fault]:
    """Return why no host could ever take a server; empty if a host could.

    :param where: the name of the flavor in a fault.
    :param queries: the queries for the server. A host that serves any of them is enough.
    :param cloud: without the allocations of servers.
    :param strangers: root providers that no nova-compute has.
    """
    reasons = Reasons(cloud, queries)
    hosts = {r: name for r, name in _hosts_for(reasons, cloud).items() if r not in strangers}
    if not hosts:
        return []
    if any(map(reasons.is_served, hosts)):
        return []
    reasons_by_name = {name: reasons.of(root) for root, name in hosts.items()}
    common = [
        n for n in reasons.names if all(n in reason.lacks for reason in reasons_by_name.values())
    ]
    if common:
        return [_common(where, name, reasons.asked(name), reasons_by_name) for name in common]
    host, reason = nearest(reasons_by_name)[0]
    parts = (
        f"{lack} {name}" if isinstance(lack, int) and lack > 1 else named(name, lack)
        for name, lack in reason.lacks.items()
    )
    given = "no host has all that the flavor requests"
    return [Fault(where, given, f"host {host} lacks least: {', '.join(parts)}")]


def _common(where: str, name: str, asked: int, reasons: Mapping[str, HostReason]) -> Fault:
    where = f"{where}, {name}"
    if not asked:
        is_trait = " " not in name and "=" not in name
        allowed = "no host has this trait" if is_trait else "no host meets it"
        if name.startswith("!"):
            allowed = f"every host has the trait {name[1:]}"
        return Fault(where, "required", allowed)
    lacks = [(reason.lacks[name], host) for host, reason in reasons.items()]
    limits = [(lack, host) for lack, host in lacks if isinstance(lack, ClaimLimit)]
    lack, host = min(limits or lacks, key=lambda item: (order_of_lack(item[0]), item[1]))
    if isinstance(lack, ClaimLimit):
        allowed = f"no host gives it in one claim: {lack.limit} {lack.value} (host {host})"
        return Fault(where, f"requests {lack.asked}", allowed)
    most = asked - lack
    allowed = f"no host has more than {most} (host {host})" if most > 0 else "no host has enough"
    return Fault(where, f"requests {asked}", allowed)
