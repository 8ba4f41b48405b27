"""Loads the plugins of all installed distributions, by stevedore namespace.

The contract of the plugins of each namespace:

* ``cpu_tiers.translators``: :mod:`cpu_tiers.translators.contract`
* ``cpu_tiers.inventory``: :mod:`cpu_tiers.inventory.contract`
* ``cpu_tiers.domain_xml``: :mod:`cpu_tiers.libvirt.contract`
* ``cpu_tiers.scorings``: :mod:`cpu_tiers.weights.scoring`

If a plugin does not load, or if two distributions have a plugin of the same name, loading fails:
leaving a plugin out would silently change the resources that a server gets.
"""

from __future__ import annotations  # ExtensionManager takes no type in older releases

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

from stevedore import ExtensionManager

from cpu_tiers.errors import ExtensionError

TRANSLATORS = "cpu_tiers.translators"
INVENTORY = "cpu_tiers.inventory"
DOMAIN_XML = "cpu_tiers.domain_xml"
SCORINGS = "cpu_tiers.scorings"


def load(namespace: str, *, others_only: bool = False) -> dict[str, Callable[..., Any]]:
    """Return the plugins of a namespace by name, in the order of their names.

    :param others_only: leave out the plugins of cpu-tiers itself.

    :raises ExtensionError: a plugin does not load, is not callable, or has the name
        of another plugin.
    """
    manager: ExtensionManager[Any] = ExtensionManager(namespace, on_load_failure_callback=_refuse)
    plugins: dict[str, Callable[..., Any]] = {}
    # Entry points come in the order of the installed distributions; sorting makes the result,
    # and the message about a conflict, the same on every machine.
    for extension in sorted(manager, key=lambda extension: str(extension.name)):
        if extension.name in plugins:
            raise ExtensionError(
                f"{namespace}: two plugins are named {extension.name!r}, and "
                f"{extension.entry_point_target} is one of the two; uninstall its distribution "
                f"or the other"
            )
        if not callable(extension.plugin):
            raise ExtensionError(f"{namespace}: {extension.entry_point_target} is not callable")
        plugins[extension.name] = extension.plugin
    if others_only:
        targets = {extension.name: str(extension.entry_point_target) for extension in manager}
        return {name: each for name, each in plugins.items() if not is_ours(targets[name])}
    return plugins


def is_ours(target: str) -> bool:
    """Tell whether an entry point leads into cpu-tiers itself."""
    return target.startswith("cpu_tiers.")


def _refuse(manager: ExtensionManager[Any], entry_point: EntryPoint, error: BaseException) -> None:
    raise ExtensionError(
        f"{manager.namespace}: the plugin {entry_point.name!r} ({entry_point.value}) "
        f"does not load: {error}"
    ) from error
