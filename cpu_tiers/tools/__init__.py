"""What people run: the commands, and what only commands need."""

import importlib.util
from importlib import import_module
from types import ModuleType

_LIBRARIES = ("cliff", "oslo_upgradecheck", "requests", "rich", "tenacity", "urllib3")


def run() -> int:
    """Run the program ``cpu-tiers``."""
    return _run("frame.app")


def run_status() -> int:
    """Run the program ``cpu-tiers-status``."""
    return _run("cloud.status")


def load(name: str) -> ModuleType:
    """Import a module of this package.

    :raises ModuleNotFoundError: the extra ``tools`` is not installed, because the services of Nova
        do without it.
    """
    missing = [library for library in _LIBRARIES if not importlib.util.find_spec(library)]
    if missing:
        advice = "pip install 'cpu-tiers[tools]'"
        raise ModuleNotFoundError(f"the commands need {', '.join(missing)}: {advice}")
    return import_module(f"cpu_tiers.tools.{name}")


def _run(name: str) -> int:
    try:
        program = load(name)
    except ModuleNotFoundError as error:
        raise SystemExit(f"cpu-tiers: {error}") from None
    status: int = program.main()
    return status
