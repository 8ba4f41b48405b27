"""The options of cpu-tiers, in a module for each group of nova.conf.

The core takes values as arguments; only commands and Nova's services read configuration.
"""

from importlib import import_module

from oslo_config import cfg

__all__ = ["list_opts"]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options of cpu-tiers by group, for oslo-config-generator."""
    # Imported here, since a service of Nova reads the options of some modules only.
    names = ("api", "compute", "filter_scheduler", "weigher", "libvirt", "quota", "read")
    modules = (import_module(f"{__name__}.{name}") for name in names)
    return [(module.GROUP, module.OPTIONS) for module in modules]
