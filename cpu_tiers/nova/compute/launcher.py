"""``cpu-tiers-nova-compute``: nova-compute, for hosts where Nova would not find the driver.

Nova imports ``nova.virt.cpu_tiers``; the wheel of cpu-tiers puts the module beside Nova. Where
Nova and cpu-tiers are installed in different directories (Nova by a distribution, cpu-tiers by
pip), the launcher registers the module instead, and then runs Nova's own ``main``.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "nova.virt.cpu_tiers"


def main() -> None:
    """Run nova-compute with its own command line."""
    # Before any other import of Nova: nova.cmd.compute patches the standard library for eventlet.
    command: Any = importlib.import_module("nova.cmd.compute")
    register()
    sys.argv[0] = "nova-compute"  # oslo.config reads nova-compute.conf by this name
    command.main()


def register() -> None:
    """Register the module of the driver under the name of Nova's import."""
    module = ModuleType(NAME, __doc__)
    # The driver registers options of Nova, so it is imported only when Nova asks for it.
    module.__dict__["__getattr__"] = _attribute
    sys.modules.setdefault(NAME, module)


def _attribute(name: str) -> Any:
    """Return the driver, the only attribute of the module (PEP 562)."""
    if name != "LibvirtDriver":
        raise AttributeError(f"{NAME} has no {name}")
    return importlib.import_module("cpu_tiers.nova.compute.driver").LibvirtDriver
