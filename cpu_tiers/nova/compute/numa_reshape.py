"""Servers move from the root of their host to its NUMA nodes, in Nova's allocations.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. Nova passes the
allocations of a starting host, and writes them and the tree in one ``POST
/reshaper``. Nothing is edited unless all servers find a place.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from nova import exception

from cpu_tiers.accounting.holdings import Portion, joined
from cpu_tiers.accounting.relocation import OF_NODES, Relocation, ServersDoNotFit, relocate
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.compute.numa_inventory import read_state
from cpu_tiers.nova.compute.tracker_run import Run
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.residents import find_residents
from cpu_tiers.placement.hosts import tree_of

LOG = logging.getLogger(__name__)


def held_of_root(
    run: Run, tree: Any, nodename: str, allocations: Mapping[str, Any]
) -> dict[str, dict[str, int]]:
    """Return what consumers hold of the root that belongs to nodes.

    :param tree: Nova's, as it is going to be. What provider.yaml gives the
        root is not in it yet, and stays there.
    """
    root = tree.data(nodename)
    moving = OF_NODES - root.inventory.keys()
    if run.file_with_shares(nodename, root.uuid):
        moving -= {VCPU_SHARES}
    held = {
        consumer: {
            name: amount
            for name, amount in body["allocations"][root.uuid]["resources"].items()
            if name in moving
        }
        for consumer, body in allocations.items()
        if root.uuid in body["allocations"]
    }
    return {consumer: resources for consumer, resources in held.items() if resources}


def move_servers(
    run: Run, tree: Any, nodename: str, present: Collection[str], allocations: dict[str, Any]
) -> None:
    """Move what consumers hold of the root to the nodes, in place as Nova wants it.

    :param tree: Nova's, as it is going to be.
    :param present: the names of the nodes and page sizes that the host has.
    :raises nova.exception.ReshapeFailed: servers find no place; each is named.
    """
    held = held_of_root(run, tree, nodename, allocations)
    root = tree.data(nodename).uuid
    node = ComputeNode(context=run.context, host=run.tracker.host, name=nodename, uuid=root)
    uuids = {name: tree.data(name).uuid for name in present}
    state = read_state(tree, nodename)
    here = {name: one for name, one in state.providers.items() if name in {nodename, *present}}
    ours = tree_of(replace(state, providers=here), nodename)
    try:
        moves = relocate(ours, held, find_residents(node, held), _used(allocations, uuids))
    except ServersDoNotFit as error:
        raise exception.ReshapeFailed(
            error=f"{error}\nNothing was changed. Or start {nodename} without [compute]"
            " enable_numa_reporting_to_placement, as before"
        ) from error
    for move in moves:
        _carry_out(move, allocations[move.consumer]["allocations"], root, uuids)


def _used(allocations: Mapping[str, Any], uuids: Mapping[str, str]) -> Portion:
    """Return what is held of the nodes already: provider's name to class to amount."""
    return joined(
        {name: body["allocations"][uuid]["resources"]}
        for body in allocations.values()
        for name, uuid in uuids.items()
        if uuid in body["allocations"]
    )


def _carry_out(
    move: Relocation, allocations: dict[str, Any], root: str, uuids: Mapping[str, str]
) -> None:
    """Edit the allocations of one consumer, in Nova's shape."""
    before = {uuid: allocation["resources"] for uuid, allocation in allocations.items()}
    after = move.carried_out(before, root, uuids.__getitem__)
    for uuid in before.keys() - after.keys():
        del allocations[uuid]
    for uuid, resources in after.items():
        allocations.setdefault(uuid, {})["resources"] = resources
    for name, moved in move.resources.items():
        LOG.info("%s holds %s of %s", move.name, moved, name)
