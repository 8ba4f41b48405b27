"""The name of VCPU_SHARES that a host has in Placement, kept by nova-compute.

Placement refuses to remove a resource class that servers hold, and Nova reshapes only where
allocations move. So a host that has the other name of VCPU_SHARES goes on to report it,
until ``reshape rename``. In between, everything in nova-compute sees our name.
"""

import contextlib
import logging
from collections.abc import Iterator

from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES, with_shares_named
from cpu_tiers.nova.compute.host_report import HostReport

LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def ours(host: HostReport) -> Iterator[None]:
    """Give the tree and the allocations of a host our name, and in the end the name they had.

    Providers that are new in the end, such as NUMA nodes, get the name of the host, too.
    """
    if not any(OTHER_SHARES in data.inventory for data in host.providers):
        yield
        return
    if host.is_starting and host.allocations is None:
        LOG.info(
            "%s keeps the name %s: cpu-tiers reshape rename gives it the name %s",
            host.name,
            OTHER_SHARES,
            VCPU_SHARES,
        )
    _name(host, VCPU_SHARES)
    try:
        yield
    finally:
        _name(host, OTHER_SHARES)


def _name(host: HostReport, name: str) -> None:
    for data in host.providers:
        host.tree.update_inventory(data.uuid, with_shares_named(data.inventory, name))
        for body in (host.allocations or {}).values():
            if of_provider := body["allocations"].get(data.uuid):
                of_provider["resources"] = with_shares_named(of_provider["resources"], name)
