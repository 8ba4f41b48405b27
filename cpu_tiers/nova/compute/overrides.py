"""The methods of Nova's libvirt driver that the driver of cpu-tiers overrides or calls."""

from cpu_tiers.nova.seams import Seam

SEAMS = tuple(
    Seam(module="nova.virt.libvirt.driver", path=f"LibvirtDriver.{method}", parameters=parameters)
    for method, parameters in (
        ("__init__", "self, virtapi, read_only=False"),
        ("update_provider_tree", "self, provider_tree, nodename, allocations=None"),
        ("_update_guest_cputune", "self, guest, flavor"),
        ("_get_vcpu_available", "self"),
        ("_get_pcpu_available", "self"),
    )
)
"""Only verified: a subclass needs no wrapper."""
