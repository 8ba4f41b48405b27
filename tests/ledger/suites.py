"""The suites of Nova's own tests that the ledger runs, and the modules of each suite."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

SUITES = {
    "scheduler": ("unit/scheduler/*",),
    "virt.hardware": ("unit/virt/test_hardware.py",),
    "resource tracker": ("unit/compute/test_resource_tracker.py", "unit/compute/test_claims.py"),
    "libvirt driver": ("unit/virt/libvirt/*",),
    "nova-api": (
        "unit/compute/test_api.py",
        "unit/compute/test_rpcapi.py",
        "unit/conductor/*",
        "unit/limit/*",
    ),
    "functional libvirt": ("functional/libvirt/*",),
    "functional moves": (
        "functional/test_servers*",
        "functional/test_cold_migrate.py",
        "functional/test_cross_cell_migrate.py",
        "functional/test_nova_manage.py",
        "functional/test_report_client.py",
        "functional/test_scheduler.py",
        "functional/test_unified_limits.py",
        "functional/test_routed_networks.py",
    ),
    "functional compute": ("functional/compute/*",),
    "regressions": ("functional/regressions/*",),
    "other functional": ("functional/*",),
}
"""Patterns of paths under ``nova/tests``, in the order of the runs: the suites that meet most
functions of cpu-tiers come first. A module belongs to the first suite whose pattern fits."""

SLICE = (
    "nova.tests.unit.scheduler.test_host_manager",
    "nova.tests.unit.scheduler.test_manager",
    "nova.tests.unit.scheduler.test_utils",
    "nova.tests.unit.virt.test_hardware",
    "nova.tests.unit.compute.test_resource_tracker",
    "nova.tests.functional.libvirt.test_reshape",
    "nova.tests.functional.libvirt.test_report_cpu_traits",
)
"""Modules in which Nova calls many of the functions that cpu-tiers wraps, for CI."""

SLICE_MODES = ("stock", "numa-query", "numa-reporting")


def modules(nova: Path, patterns: Sequence[str] = ()) -> dict[str, str]:
    """Return the suite of each test module, by the module's name, in the order of the runs.

    :param nova: the folder of the installed ``nova``.
    :param patterns: patterns of names of modules, with ``*``; none: all modules.
    """
    found: dict[str, str] = {}
    tests = nova / "tests"
    for suite, paths in SUITES.items():
        for path in sorted(tests.rglob("test_*.py")):
            relative = path.relative_to(tests)
            name = ".".join(("nova", "tests", *relative.with_suffix("").parts))
            if any(fnmatchcase(str(relative), pattern) for pattern in paths):
                found.setdefault(name, suite)
    return {
        name: suite
        for name, suite in found.items()
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
