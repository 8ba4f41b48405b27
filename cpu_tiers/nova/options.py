"""The options of cpu-tiers on the configuration object of Nova, ``nova.conf.CONF``."""

from importlib import import_module
from types import ModuleType

import nova.conf

CONF = nova.conf.CONF


def register(module: ModuleType) -> None:
    """Add the options of a module of ``cpu_tiers.conf`` to ``nova.conf``.

    A second call with the same module has no effect.

    :raises ConfigFileValueError: a value is malformed or not among the choices.
    """
    CONF.register_opts(module.OPTIONS, group=module.GROUP)
    # oslo.config parses an option when the option is read. Reading all options now stops the
    # service at its start if a value is bad, instead of failing in every request.
    for option in module.OPTIONS:
        CONF[module.GROUP][option.name]


def register_group(group: str) -> None:
    """Add the options of cpu-tiers in a group of nova.conf, as :func:`register` does."""
    register(import_module(f"cpu_tiers.conf.{group}"))


def extends_cpu_policies() -> bool:
    """Tell whether ``[compute] extend_cpu_policies`` is on; ``False`` before its registration."""
    return "extend_cpu_policies" in CONF.compute and bool(CONF.compute.extend_cpu_policies)
