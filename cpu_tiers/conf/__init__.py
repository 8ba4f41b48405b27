"""Options of cpu-tiers, one module for each group of nova.conf.

The core gets values as arguments; configuration is read at the edges alone.
"""

from oslo_config import cfg

from cpu_tiers.conf import compute, filter_scheduler, libvirt

__all__ = ["list_opts"]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return our options by group, for oslo-config-generator."""
    return [(module.GROUP, module.OPTIONS) for module in (compute, filter_scheduler, libvirt)]
