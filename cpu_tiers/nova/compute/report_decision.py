"""What a compute host is to report beside what Nova reports: its NUMA nodes, and shares.

Decided anew in each run of Nova's resource tracker, by nova.conf and by what
Placement has: neither can be turned off while it is there, and servers can be
given what they lack at a start alone.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import nova.conf
from nova import exception

from cpu_tiers.accounting.missing_shares import Shortfall
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.compute import shares_inventory
from cpu_tiers.nova.compute.numa_inventory import nodes_of, reports_nodes
from cpu_tiers.nova.compute.tracker_run import Run

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a host reports in one run.

    :param nodes: CPUs and memory stand on NUMA nodes.
    :param no_numa: servers with a NUMA topology are to stay away.
    :param shares: VCPU_SHARES stand beside VCPU.
    :param kept: those that must not vanish though they are not reported, by provider.
    """

    nodes: bool
    no_numa: bool
    shares: bool = False
    kept: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def decide(run: Run | None, tree: Any, nodename: str) -> Wanted:
    """Return what a host reports in this run.

    :raises nova.exception.InvalidConfiguration: the service is starting, and
        something that was reported was turned off; or options contradict each other.
    """
    option: bool | None = CONF.compute.enable_numa_reporting_to_placement
    nodes = reports_nodes(run, tree, nodename, option)
    if nodes and CONF.libvirt.file_backed_memory:
        raise exception.InvalidConfiguration(
            "[libvirt] file_backed_memory is of no NUMA node: unset it, or [compute]"
            " enable_numa_reporting_to_placement"
        )
    no_numa = option is False and not nodes
    if CONF.libvirt.report_vcpu_shares:
        return Wanted(nodes=nodes, no_numa=no_numa, shares=_may_report(run, tree, nodename))
    kept = shares_inventory.shares_to_keep(run, tree, nodename)
    return Wanted(nodes=nodes, no_numa=no_numa, kept=kept)


def _may_report(run: Run | None, tree: Any, nodename: str) -> bool:
    """Tell whether the host can report shares now.

    Nova reshapes at start-up alone. A host that missed it, and has servers
    that lack shares, reports none until the next.
    """
    if shares_inventory.has_shares(tree, nodename) or (run is not None and run.startup):
        return True
    if run is not None and not shares_inventory.find_demands(
        run, tree, nodename, run.allocations(nodename)
    ):
        return True
    LOG.error("%s reports %s after a restart of this service", nodename, VCPU_SHARES)
    return False


def missing_shares(
    run: Run, tree: Any, coming: Any, nodename: str, held: Mapping[str, Any]
) -> dict[str, tuple[Shortfall, ...]]:
    """Return the shares that consumers lack and are to get, by the uuid of the provider.

    On a root that is going to have none, consumers get them to take them along
    to the nodes, where they fit or do not. Other providers that are going to
    have none have no shared CPU any more.

    :param tree: as Placement has it.
    :param coming: as it is going to be.
    :raises nova.exception.InvalidConfiguration: provider.yaml reports shares, too.
    :raises nova.exception.ReshapeFailed: they do not fit.
    """
    shares_inventory.refuse_two_reporters(run, coming, nodename)
    demands = shares_inventory.find_demands(run, tree, nodename, held)
    shares_inventory.refuse_to_start(coming, nodename, demands, held)
    goes_along = {tree.data(nodename).uuid} if nodes_of(coming, nodename) else set()
    return {
        uuid: lacking
        for uuid, lacking in demands.items()
        if VCPU_SHARES in coming.data(uuid).inventory or uuid in goes_along
    }
