"""The module in which Nova looks for ``compute_driver = cpu_tiers.LibvirtDriver``.

The wheel of cpu-tiers puts the module beside Nova, as ``nova.virt.cpu_tiers``. The wheel has no
``__init__`` of ``nova`` or ``nova.virt``, so Nova is imported from its own directory, wherever
Nova is installed.
"""

from cpu_tiers.nova.compute.driver import LibvirtDriver

__all__ = ["LibvirtDriver"]
