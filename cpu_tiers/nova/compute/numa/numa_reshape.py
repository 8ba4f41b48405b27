"""Servers move from the root of their host to its NUMA nodes, in Nova's allocations.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. Nova passes the allocations of a
starting host to the driver, and writes allocations and tree in one ``POST /reshaper``. Either all
servers find a place, or nothing is edited.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from cpu_tiers.accounting.holdings import (
    Amounts,
    ConsumerId,
    Portion,
    ProviderId,
    ProviderName,
    sum_portions,
)
from cpu_tiers.accounting.relocation import Relocation, ServersDoNotFit, relocate
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.nova.compute.host_report import HostReport
from cpu_tiers.nova.compute.start_refusal import MoveRefused
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.placement.steps import tree_of

LOG = logging.getLogger(__name__)


def allocations_to_move(
    host: HostReport, allocations: Mapping[str, Any]
) -> dict[ConsumerId, Amounts]:
    """Return what each consumer has of the root and should have of NUMA nodes.

    :param host: with the tree as the host is going to report it. The shares that a
        provider.yaml gives the root are not in the tree yet, and are not moved.
    """
    root = host.root
    moving = OF_NODES - root.inventory.keys()
    if host.file_with_shares(root):
        moving -= {VCPU_SHARES}
    amounts = {
        ConsumerId(consumer): {
            name: amount
            for name, amount in body["allocations"][root.uuid]["resources"].items()
            if name in moving
        }
        for consumer, body in allocations.items()
        if root.uuid in body["allocations"]
    }
    return {consumer: resources for consumer, resources in amounts.items() if resources}


def move_servers(
    host: HostReport, present: Collection[str], allocations: dict[str, dict[str, Any]]
) -> None:
    """Move allocations of the root to the NUMA nodes, in place as Nova wants it.

    :param host: with the tree as the host is going to report it.
    :param present: the names of the nodes and page sizes that the host has.
    :raises MoveRefused: each server that finds no place is named.
    """
    moving = allocations_to_move(host, allocations)
    uuids = {ProviderName(name): ProviderId(host.tree.data(name).uuid) for name in present}
    residents = find_residents(host.compute_node, moving.keys())
    try:
        moves = relocate(_tree(host, present), moving, residents, _used(allocations, uuids))
    except ServersDoNotFit as error:
        raise MoveRefused(
            error=f"{error}\nNothing was changed. Or start {host.name} without [compute]"
            " enable_numa_reporting_to_placement, as before"
        ) from error
    for move in moves:
        _carry_out(move, allocations[move.consumer]["allocations"], host.root.uuid, uuids)


def _tree(host: HostReport, present: Collection[str]) -> ProviderTree:
    """Return the root and the present nodes, without nodes that vanished and are in use."""
    names = {host.name, *present}
    state = host.state
    providers = {name: state.providers[name] for name in state.providers if name in names}
    return tree_of(replace(state, providers=providers), host.name)


def _used(
    allocations: Mapping[str, Any], uuids: Mapping[ProviderName, ProviderId]
) -> Portion[ProviderName]:
    """Return the sum of the allocations of each node."""
    return sum_portions(
        Portion({name: body["allocations"][uuid]["resources"]})
        for body in allocations.values()
        for name, uuid in uuids.items()
        if uuid in body["allocations"]
    )


def _carry_out(
    move: Relocation,
    allocations: dict[str, Any],
    root: ProviderId,
    uuids: Mapping[ProviderName, ProviderId],
) -> None:
    """Edit the allocations of one consumer, in Nova's shape."""
    before = Portion.by_id({uuid: body["resources"] for uuid, body in allocations.items()})
    after = move.carried_out(before, root, uuids.__getitem__)
    for released in before.keys() - after.keys():
        del allocations[released]
    for uuid, resources in after.to_json().items():
        # Nova ignores the other keys of an allocation, such as the generation of its provider.
        allocations.setdefault(uuid, {})["resources"] = resources
    for name, moved in move.resources.items():
        LOG.info("%s moves to %s with %s", move.name, name, dict(moved))
