"""A cloud whose computes have Nova's own driver, and whose scheduler has our weigher alone."""

from typing import Any

from nova.tests.fixtures import libvirt as fakelibvirt

from tests.nova.computes import MULTIPLIER, SHARES, Computes
from tests.nova.kinds import WEIGHER, Kind

__all__ = ["MULTIPLIER", "SHARES", "STOCK", "WEIGHER", "Cloud"]


def hardware() -> Any:
    """Return what libvirt says of a host of 8 CPUs and 16 GiB."""
    return fakelibvirt.HostInfo(cpu_nodes=1, cpu_sockets=1, cpu_cores=4, cpu_threads=2)


STOCK = Kind(
    driver="libvirt.LibvirtDriver",
    weighers=(WEIGHER,),
    scheduler_options={},
    hardware=hardware,
)
"""Hosts with Nova's own driver, which take resources from a provider.yaml.

Nothing of Nova's own weighers is loaded, so that a test knows who decided.
"""


class Cloud(Computes):
    """Hosts of the kind :data:`STOCK`; ``start_host`` takes what else they have.

    That is, ``start_host("one", CUSTOM_VCPU_SHARES=800)`` starts a host whose
    provider.yaml has 800 shares.
    """

    kind = STOCK
    microversion = "latest"
