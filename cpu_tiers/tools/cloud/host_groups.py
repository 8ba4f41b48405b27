"""The argument ``--group-by``: the hosts of each availability zone or host aggregate."""

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.compute_api.objects import read_aggregates
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.simulation.snapshot import Snapshot

ZONE = "zone"
AGGREGATE = "aggregate"

_OTHERS = {ZONE: "default zone", AGGREGATE: "no aggregate"}

HostGroups = Mapping[str, frozenset[str]]
"""The names of the hosts of each group."""


def add_group_argument(parser: ArgumentParser) -> None:
    """Add the argument."""
    parser.add_argument(
        "--group-by",
        choices=(ZONE, AGGREGATE),
        help="also show what is left of each availability zone or host aggregate, for which Nova's"
        " API is asked; a snapshot has only the uuids of aggregates",
    )


def read_host_groups(cloud: CloudSource, kind: str) -> HostGroups:
    """Return the providers of each group.

    It takes a request to Nova, and a request to Placement for each aggregate.

    :raises InvalidInput: zones are wanted of a snapshot, which has none.
    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    :raises PlacementError: Placement does not answer, or refuses.
    """
    if cloud.snapshot is not None:
        return _of_snapshot(cloud.snapshot, kind)
    groups: dict[str, set[str]] = {}
    with ProgressLine("asking for aggregates"), cloud.placement() as client:
        for aggregate in read_aggregates(cloud.services()):
            name = aggregate.name if kind == AGGREGATE else aggregate.zone
            if name is not None:
                providers = client.providers_in_aggregate(aggregate.uuid)
                groups.setdefault(name, set()).update(provider.name for provider in providers)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def _of_snapshot(snapshot: Snapshot, kind: str) -> HostGroups:
    if kind == ZONE:
        raise InvalidInput.of(
            "--group-by zone",
            "a snapshot has the uuids of aggregates, and no zones",
            "give --group-by aggregate, or ask the cloud itself",
        )
    groups: dict[str, set[str]] = {}
    for provider in snapshot.providers:
        for aggregate in provider.aggregates:
            groups.setdefault(aggregate, set()).add(provider.name)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def groups_of(hosts: Iterable[str], groups: HostGroups, kind: str) -> HostGroups:
    """Return the hosts of each group, sorted by name; the hosts of no group come last."""
    names = frozenset(hosts)
    of_hosts = {name: names & groups[name] for name in sorted(groups)}
    others = names.difference(*of_hosts.values())
    if others:
        of_hosts[_OTHERS[kind]] = of_hosts.get(_OTHERS[kind], frozenset()) | others
    return {name: of_group for name, of_group in of_hosts.items() if of_group}
