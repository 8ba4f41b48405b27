"""A whole cloud as a snapshot: providers and allocations, and the servers of Nova.

Each function raises :class:`~cpu_tiers.tools.compute_api.ComputeApiUnavailable` if a service does
not answer, or refuses.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain

from cpu_tiers.errors import FaultList
from cpu_tiers.tools.cloud_model.consumers import consumer_parts
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServers
from cpu_tiers.tools.compute_api import ComputeApiUnavailable
from cpu_tiers.tools.frame.cloud_source import CloudSource, warn_of_left_out_flavors
from cpu_tiers.tools.frame.nova_servers import read_places, read_servers
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import ReadProgress, read_whole_cloud

LOG = logging.getLogger(__name__)

_Read = Callable[[PlacementClient, ReadProgress, int], Snapshot]

MOST_AGAIN = 100
"""So many consumers that look wrong are read again."""


def read_providers(cloud: CloudSource, progress: ProgressLine, read: _Read) -> Snapshot:
    """Return what Placement's database has, or what a function reads of Placement's API."""
    if cloud.databases:
        return cloud.databases.placement
    with cloud.placement() as client:
        return read(client, partial(progress.tell_number, "providers"), cloud.jobs)


def read_snapshot_of(cloud: CloudSource, *, asks_nova: bool) -> Snapshot:
    """Return the snapshot in place of the cloud, or read the cloud.

    :param asks_nova: whether to read flavors, servers and server groups, too.
    """
    if cloud.snapshot is not None:
        return cloud.snapshot
    taken, faults = datetime.now(UTC), FaultList()
    with ProgressLine("asking Placement") as progress:
        snapshot = read_providers(cloud, progress, read_whole_cloud)
        if asks_nova:
            progress.tell("asking Nova for flavors")
            flavors = tuple(cloud.flavors(faults))
            progress.tell("asking Nova for servers")
            servers = read_servers(cloud.nova(), cloud.compute_services, faults)
            snapshot = _settled(cloud, replace(snapshot, flavors=flavors), servers)
    if cloud.databases:
        cloud.databases.close()  # a plan or a simulation takes long
    warn_of_left_out_flavors(faults)
    return replace(snapshot, taken=taken)


def with_places(
    cloud: CloudSource, snapshot: Snapshot, *, must_answer: bool, wants_names: bool = False
) -> Snapshot:
    """Return a cloud with the places of its servers.

    :param must_answer: whether it is an error if there is no Nova, or Nova does not answer.
    :param wants_names: whether Nova is asked even if it does not say which hosts are up.
    """
    is_wanted = must_answer or wants_names or not cloud.service_states.unknown
    is_asked = cloud.has_nova and is_wanted
    if snapshot.servers is not None or not is_asked or not snapshot.consumers:
        return snapshot
    with ProgressLine("asking Nova for the places of servers"):
        try:
            servers = read_places(cloud.nova(), cloud.compute_services)
        except ComputeApiUnavailable as error:
            if must_answer:
                raise
            LOG.warning("Where Nova and Placement differ is not known: %s", error)
            return snapshot
        return _settled(cloud, snapshot, servers)


def _settled(cloud: CloudSource, snapshot: Snapshot, servers: SnapshotServers) -> Snapshot:
    """Return a cloud with servers, after a second look at the consumers that look wrong.

    Placement was asked before Nova. A server that moved, or was deleted, between both answers
    looks as if it was lost; its allocations of now fit to what Nova says.
    """
    snapshot = replace(snapshot, servers=servers)
    parts = chain.from_iterable(consumer_parts(snapshot))
    wrong = {part.consumer for part in parts if part.role.is_wrong}
    consumers, types = dict(snapshot.consumers), dict[str, str]()
    providers = {provider.uuid for provider in snapshot.providers}
    for uuid in sorted(wrong)[:MOST_AGAIN]:
        now = cloud.consumer(uuid)
        held = {str(p): {**amounts} for p, amounts in now.allocations.items() if p in providers}
        if held:
            consumers[uuid], types[uuid] = held, now.consumer_type
        else:
            del consumers[uuid]
    return replace(snapshot, consumers=consumers, servers=replace(servers, types=types))
