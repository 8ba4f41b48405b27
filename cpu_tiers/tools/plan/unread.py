"""What the answer of a plan stands on and what was not read: said in its first lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    AGGREGATES,
    HINTS,
    UNREAD,
    SnapshotServers,
)
from cpu_tiers.tools.plan.bindings import HINT_FILTERS, KNOWN_FILTERS, FilterOptions
from cpu_tiers.tools.plan.known_traits import KnownTraits

NO_SERVERS = (
    "flavors, states and groups of servers: the snapshot is of version 1, so each server requests"
    " what it has, and all servers are taken for running"
)

ALWAYS = (
    "Nova checks each migration when it begins, also what no plan reads: cells, SR-IOV ports and"
    " free PCI devices without [filter_scheduler] pci_in_placement, shares of Manila, and what"
    " nova.conf or libvirt refuse, such as another model of CPU."
)


def unread_of(
    snapshot: Snapshot, options: FilterOptions, new: Flavor | None = None
) -> Sequence[str]:
    """Return what is not known of the servers of a snapshot and decides about their hosts.

    :param options: of nova-scheduler; what only a filter reads counts if the filter is on.
    :param new: the flavor of new servers, for which the plan makes room.
    """
    if snapshot.servers is None:
        return (NO_SERVERS,)
    filters = sorted(options.enabled - KNOWN_FILTERS)
    unknown = [f"what the filters of nova-scheduler decide: {', '.join(filters)}"]
    return (
        *_unread(snapshot.servers, options),
        *_unread_traits(snapshot, snapshot.servers, new),
        *(unknown if filters else ()),
    )


def _unread_traits(
    snapshot: Snapshot, servers: SnapshotServers, new: Flavor | None
) -> Iterator[str]:
    known = KnownTraits(snapshot)
    flavors = [new, *(server.flavor for server in servers.servers.values())]
    if names := sorted(set[str]().union(*map(known.unread, filter(None, flavors)))):
        yield f"whether Placement knows the traits that flavors forbid: {', '.join(names)}"


def _unread(servers: SnapshotServers, options: FilterOptions) -> Iterator[str]:
    needless = set() if options.enabled & HINT_FILTERS else {HINTS}
    if not _needs_aggregates(servers, options):
        needless.add(AGGREGATES)
    names = [name for name in UNREAD if name not in needless]
    if of_all := [name for name in names if name in servers.unread]:
        yield f"{', '.join(of_all)} of the servers, as Nova's API has them since 2.100"
    for name in sorted(set(names).difference(of_all)):
        some = sum(name in server.unread for server in servers.servers.values())
        if some:
            yield f"{name} of {some:,} of {len(servers.servers):,} servers"


def _needs_aggregates(servers: SnapshotServers, options: FilterOptions) -> bool:
    is_pinned = any(server.zone for server in servers.servers.values())
    has_filter = any(name.startswith("Aggregate") for name in options.enabled)
    return is_pinned or has_filter or options.limits_tenants or options.isolates_aggregates
