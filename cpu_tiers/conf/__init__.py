"""The options of cpu-tiers, in a module for each group of nova.conf.

The core takes values as arguments; only commands and Nova's services read configuration.
"""

from oslo_config import cfg

__all__ = ["list_opts"]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options of cpu-tiers by group, for oslo-config-generator."""
    # Here, since a service of Nova reads the options of some groups only.
    from cpu_tiers.conf import api, compute, filter_scheduler, libvirt

    return [(module.GROUP, module.OPTIONS) for module in (api, compute, filter_scheduler, libvirt)]
