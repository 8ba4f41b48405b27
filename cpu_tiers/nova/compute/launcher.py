"""``cpu-tiers-nova-compute``: nova-compute, where Nova would not find our driver.

Nova imports ``nova.virt.cpu_tiers``, which our wheel puts beside Nova. Where
the two live in different directories (a distribution's Nova, and a pip
install) that module is registered here instead, and Nova's own ``main`` runs.
Nova comes first: importing its command patches the standard library.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

NAME = "nova.virt.cpu_tiers"


def main() -> None:
    """Run nova-compute with its own command line."""
    command: Any = importlib.import_module("nova.cmd.compute")
    register()
    sys.argv[0] = "nova-compute"  # by which Nova finds nova-compute.conf
    command.main()


def register() -> None:
    """Let Nova import the driver, once it has read its configuration."""
    module = ModuleType(NAME, __doc__)
    module.__dict__["__getattr__"] = _attribute
    sys.modules.setdefault(NAME, module)


def _attribute(name: str) -> Any:
    """Return what Nova looks for in the module (PEP 562)."""
    if name != "LibvirtDriver":
        raise AttributeError(f"{NAME} has no {name}")
    return importlib.import_module("cpu_tiers.nova.compute.driver").LibvirtDriver
