"""A whole cloud as a snapshot: providers and allocations, and the servers of Nova.

Each function raises :class:`~cpu_tiers.tools.compute_api.ComputeApiUnavailable` if a service does
not answer, or refuses.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.compute_api import (
    read_all_servers,
    read_server_groups,
)
from cpu_tiers.tools.compute_services import read_compute_services
from cpu_tiers.tools.frame.cloud_source import CloudSource, warn_of_left_out_flavors
from cpu_tiers.tools.frame.documents import flavor_of
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud


def read_snapshot_of(cloud: CloudSource, *, asks_nova: bool) -> Snapshot:
    """Return the snapshot in place of the cloud, or read the cloud.

    :param asks_nova: whether to read flavors, servers and server groups, too.
    """
    if cloud.snapshot is not None:
        return cloud.snapshot
    taken, faults = datetime.now(UTC), FaultList()
    with ProgressLine("asking Placement") as progress:
        with cloud.placement() as client:
            snapshot = read_whole_cloud(
                client, partial(progress.tell_number, "providers"), cloud.jobs
            )
        if asks_nova:
            progress.tell("asking Nova for flavors")
            flavors = tuple(cloud.flavors(faults))
            progress.tell("asking Nova for servers")
            servers = _read_servers(cloud.services(), faults)
            snapshot = replace(snapshot, flavors=flavors, servers=servers)
    warn_of_left_out_flavors(faults)
    return replace(snapshot, taken=taken)


def _read_servers(services: Services, faults: FaultList) -> SnapshotServers:
    """Return the servers and the server groups of Nova.

    :param faults: collects the faults of flavors; their servers request what they have.
    """
    servers = {body["id"]: _server(body, faults) for body in read_all_servers(services)}
    groups = {body["id"]: _group(body) for body in read_server_groups(services)}
    computes = read_compute_services(services)
    return SnapshotServers(
        servers=servers,
        groups=groups,
        services={node: compute.host for compute in computes for node in compute.nodes},
        down=tuple(
            dict.fromkeys(
                node for compute in computes if not compute.is_up for node in compute.nodes
            )
        ),
    )


def _server(body: Mapping[str, Any], faults: FaultList) -> SnapshotServer:
    flavor = body.get("flavor")
    where = f"server {body['id']}"
    return SnapshotServer(
        name=str(body.get("name") or body["id"]),
        flavor=faults.read(flavor_of, flavor, where) if isinstance(flavor, Mapping) else None,
        state=str(body.get("status") or ""),
        task=str(body.get("OS-EXT-STS:task_state") or ""),
        is_locked=body.get("locked") is True,
    )


def _group(body: Mapping[str, Any]) -> ServerGroup:
    rules = body.get("rules")
    most = rules.get("max_server_per_host") if isinstance(rules, Mapping) else None
    members = body.get("members")
    return ServerGroup(
        name=str(body.get("name") or body["id"]),
        policy=str(body.get("policy") or ""),
        most=most if type(most) is int and most > 0 else 1,
        members=tuple(map(str, members)) if isinstance(members, list) else (),
    )
