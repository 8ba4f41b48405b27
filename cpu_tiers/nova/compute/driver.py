"""``compute_driver = cpu_tiers.LibvirtDriver``: Nova's libvirt driver, NUMA nodes and shares.

Thin: whether to report those stands in ``wanted``, how in ``reporting`` and
``numa``, what a guest weighs in ``guest``. Nothing happens when the module is
imported.
"""

import copy
import functools
import logging
from collections.abc import Mapping
from typing import Any

import nova.conf
from nova import exception
from nova.virt.libvirt import driver

from cpu_tiers import extensions
from cpu_tiers.conf import compute, libvirt
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.inventory import Reporter
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova import cpu_policies, options, seams
from cpu_tiers.nova.compute import (
    leftover_allocations,
    numa_pinning,
    numa_reshape,
    shares_inventory,
    tracker_run,
)
from cpu_tiers.nova.compute import numa_inventory as numa
from cpu_tiers.nova.compute.guest_weight import LIVE_MIGRATION, with_plain_shares
from cpu_tiers.nova.compute.report_decision import Wanted, decide, missing_shares
from cpu_tiers.placement.steps import State

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

_MODULE = "nova.virt.libvirt.driver"
_USED = (
    seams.Seam(
        module=_MODULE,
        path="LibvirtDriver.__init__",
        parameters=("self", "virtapi", "read_only"),
    ),
    seams.Seam(
        module=_MODULE,
        path="LibvirtDriver.update_provider_tree",
        parameters=("self", "provider_tree", "nodename", "allocations"),
    ),
    seams.Seam(
        module=_MODULE,
        path="LibvirtDriver._update_guest_cputune",
        parameters=("self", "guest", "flavor"),
    ),
    seams.Seam(
        module=_MODULE,
        path="LibvirtDriver._get_vcpu_available",
        parameters=("self",),
    ),
    seams.Seam(
        module=_MODULE,
        path="LibvirtDriver._get_pcpu_available",
        parameters=("self",),
    ),
)


class LibvirtDriver(driver.LibvirtDriver):
    """Reports NUMA nodes and VCPU_SHARES, and gives guests the weight of their multiplier."""

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        """Check that we fit this Nova, before anything is wrapped.

        :raises SeamMismatch: we do not.
        """
        seams.verify(_USED)
        seams.install(
            [
                *cpu_policies.SEAMS,
                tracker_run.SEAM,
                LIVE_MIGRATION,
                *numa_pinning.SEAMS,
                *leftover_allocations.SEAMS,
            ]
        )
        options.register(compute)
        options.register(libvirt)
        super().__init__(virtapi, read_only)

    def _update_guest_cputune(self, guest: Any, flavor: Any) -> None:
        super()._update_guest_cputune(guest, with_plain_shares(flavor))

    def update_provider_tree(
        self, provider_tree: Any, nodename: str, allocations: Any = None
    ) -> None:
        """Report what Nova reports, NUMA nodes, and shares beside VCPU.

        :raises nova.exception.ReshapeNeeded: at start-up, where servers lack
            shares or belong to nodes; the tree is as it was.
        :raises nova.exception.ReshapeFailed: they would not fit.
        :raises nova.exception.InvalidConfiguration: at start-up, where
            reporting was turned off, or provider.yaml reports shares too.
        """
        run = tracker_run.current()
        wanted = decide(run, provider_tree, nodename)
        if run is not None and run.startup:
            self._reshape(run, wanted, provider_tree, nodename, allocations)
        present = self._report(run, wanted, provider_tree, nodename, allocations)
        if run is not None and present and allocations is not None:
            numa_reshape.move_servers(run, provider_tree, nodename, present, allocations)
        self.provider_tree = copy.deepcopy(provider_tree)

    def _reshape(
        self, run: tracker_run.Run, wanted: Wanted, tree: Any, nodename: str, allocations: Any
    ) -> None:
        """Add the shares that servers lack to their allocations, or ask Nova to bring those.

        :raises nova.exception.ReshapeNeeded: Nova did not bring them, and servers
            lack shares or belong to nodes.
        :raises nova.exception.ReshapeFailed: the shares would not fit.
        """
        if not wanted.shares and not wanted.nodes:
            return
        coming = copy.deepcopy(tree)
        self._report(run, wanted, coming, nodename, copy.deepcopy(allocations))
        held = run.allocations(nodename) if allocations is None else allocations
        demands = missing_shares(run, tree, coming, nodename, held) if wanted.shares else {}
        if allocations is not None:
            shares_inventory.add_demands(demands, allocations)
        elif demands or (wanted.nodes and numa_reshape.held_of_root(run, coming, nodename, held)):
            LOG.info("Servers on %s lack %s, or move to NUMA nodes", nodename, VCPU_SHARES)
            raise exception.ReshapeNeeded()

    def _report(
        self,
        run: tracker_run.Run | None,
        wanted: Wanted,
        tree: Any,
        nodename: str,
        allocations: Any,
    ) -> frozenset[str]:
        """Edit the tree; return the names of the nodes and page sizes that the host reports."""
        before = numa.read_state(tree, nodename)
        if wanted.nodes:
            numa.show_pcpus(tree, nodename)
        super().update_provider_tree(tree, nodename, allocations=allocations)
        numa.mark(tree, nodename, no_numa=wanted.no_numa)
        present: frozenset[str] = frozenset()
        if wanted.nodes:
            present = self._report_nodes(run, tree, nodename, before)
        if wanted.shares:
            shares_inventory.put_shares(tree, nodename, CONF.libvirt.vcpu_share_multiplier)
        shares_inventory.put_back_shares(tree, wanted.kept)
        return present

    def _report_nodes(
        self, run: tracker_run.Run | None, tree: Any, nodename: str, before: State
    ) -> frozenset[str]:
        """Put what Nova reports of the root on nodes; return the names of those."""
        try:
            cpus = self._get_vcpu_available() | self._get_pcpu_available()
            topology = numa.online(self._topology, cpus)
            options = inventory_options(CONF)
            present = numa.put_nodes(tree, nodename, topology, options, self._reporters, before)
        except CpuTiersError as error:
            raise exception.InvalidConfiguration(str(error)) from error
        if run is not None:
            numa.drop_vanished(run, tree, nodename, present)
        return present

    @functools.cached_property
    def _topology(self) -> HostTopology:
        """The cells of the host, as Nova read them when the service started.

        libvirt leaves out CPUs that are offline, and Nova powers dedicated ones
        down that no server has, but only after it has read them.
        """
        text: str = self._host.get_capabilities().to_xml()
        return parse_capabilities(text.encode(), where="libvirt's capabilities of this host")

    @functools.cached_property
    def _reporters(self) -> Mapping[str, Reporter]:
        return extensions.load(extensions.INVENTORY)
