"""Where Nova looks for ``compute_driver = cpu_tiers.LibvirtDriver``.

The wheel puts this module beside Nova, as ``nova.virt.cpu_tiers``; without an
``__init__`` above it, so a Nova that lies elsewhere stays the one that is
imported.
"""

from cpu_tiers.nova.compute.driver import LibvirtDriver

__all__ = ["LibvirtDriver"]
