"""The methods of Nova's libvirt driver that the driver of cpu-tiers overrides or calls."""

from cpu_tiers.nova.seams import Seam

_MODULE = "nova.virt.libvirt.driver"
SEAMS = (
    Seam(
        module=_MODULE,
        path="LibvirtDriver.__init__",
        parameters=("self", "virtapi", "read_only=False"),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver.update_provider_tree",
        parameters=("self", "provider_tree", "nodename", "allocations=None"),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._update_guest_cputune",
        parameters=("self", "guest", "flavor"),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._get_vcpu_available",
        parameters=("self",),
    ),
    Seam(
        module=_MODULE,
        path="LibvirtDriver._get_pcpu_available",
        parameters=("self",),
    ),
)
"""Only verified: a subclass needs no wrapper."""
