"""``compute_driver = cpu_tiers.LibvirtDriver``: Nova's libvirt driver, and shares.

Thin: what to report stands in ``reporting``, what a guest weighs in
``guest``. Nothing happens when the module is imported.
"""

import copy
import logging
from collections.abc import Mapping
from typing import Any

import nova.conf
from nova import exception
from nova.virt.libvirt import driver

from cpu_tiers.conf import libvirt
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova import cpus, options, reporting, seams, tracking
from cpu_tiers.nova.guest import LIVE_MIGRATION, with_plain_shares

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

_MODULE = "nova.virt.libvirt.driver"
_OVERRIDDEN = (
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
)


class LibvirtDriver(driver.LibvirtDriver):
    """Reports VCPU_SHARES, and gives guests the weight of their multiplier."""

    def __init__(self, virtapi: Any, read_only: bool = False) -> None:
        """Check that we fit this Nova, before anything is wrapped.

        :raises SeamMismatch: we do not.
        """
        seams.verify(_OVERRIDDEN)
        seams.install([*cpus.SEAMS, tracking.SEAM, LIVE_MIGRATION])
        options.register(libvirt)
        super().__init__(virtapi, read_only)

    def _update_guest_cputune(self, guest: Any, flavor: Any) -> None:
        super()._update_guest_cputune(guest, with_plain_shares(flavor))

    def update_provider_tree(
        self, provider_tree: Any, nodename: str, allocations: Any = None
    ) -> None:
        """Report what Nova reports, and shares beside VCPU.

        :raises nova.exception.ReshapeNeeded: at start-up, where servers lack
            shares; the tree is as it was.
        :raises nova.exception.ReshapeFailed: their shares would not fit.
        :raises nova.exception.InvalidConfiguration: at start-up, where
            reporting was turned off, or provider.yaml reports shares too.
        """
        run = tracking.current()
        on = CONF.libvirt.report_vcpu_shares
        kept = None if on else reporting.shares_to_keep(run, provider_tree, nodename)
        if on and run is not None and run.startup:
            reporting.refuse_two_reporters(run, provider_tree, nodename)
            self._reshape(run, provider_tree, nodename, allocations)
        reports = on and _may_report(run, provider_tree, nodename)
        super().update_provider_tree(provider_tree, nodename, allocations=allocations)
        record = _shares_record(provider_tree, nodename) if reports else kept
        if record:
            reporting.add_shares(provider_tree, nodename, record)
            self.provider_tree = copy.deepcopy(provider_tree)

    def _reshape(self, run: tracking.Run, tree: Any, nodename: str, allocations: Any) -> None:
        """Add the shares that servers lack to their allocations, or ask Nova to bring those.

        :raises nova.exception.ReshapeNeeded: Nova did not bring them.
        :raises nova.exception.ReshapeFailed: the shares would not fit.
        """
        coming = copy.deepcopy(tree)
        super().update_provider_tree(coming, nodename, allocations=copy.deepcopy(allocations))
        held = run.allocations(nodename) if allocations is None else allocations
        demands = reporting.find_demands(run, tree, nodename, held)
        shares = _shares_record(coming, nodename)
        reporting.refuse_to_start(tree, nodename, shares, demands, held)
        if not demands or shares is None:
            return
        if allocations is None:
            LOG.info("%d consumers on %s lack %s", len(demands), nodename, VCPU_SHARES)
            raise exception.ReshapeNeeded()
        reporting.add_demands(demands, allocations, tree.data(nodename).uuid)


def _may_report(run: tracking.Run | None, tree: Any, nodename: str) -> bool:
    """Tell whether the host can report shares now.

    Nova reshapes at start-up alone. A host that missed it, and has servers
    that lack shares, reports none until the next.
    """
    if VCPU_SHARES in tree.data(nodename).inventory or (run is not None and run.startup):
        return True
    if run is not None and not reporting.find_demands(
        run, tree, nodename, run.allocations(nodename)
    ):
        return True
    LOG.error("%s reports %s after a restart of this service", nodename, VCPU_SHARES)
    return False


def _shares_record(tree: Any, nodename: str) -> Mapping[str, float] | None:
    return reporting.shares_record(tree, nodename, CONF.libvirt.vcpu_share_multiplier)
