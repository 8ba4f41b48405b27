"""The os-resource-classes and os-traits in which the names of the specs are standard."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import os_resource_classes
import os_traits

from tests.in_processes import FOLDER

ROOT = Path(__file__).parents[1]

NAMES = ("NON_NUMA",), ("PAGE_SIZE_SMALL", "PAGE_SIZE_LARGE")
"""The names below ``HW`` and ``MEMORY`` that the later os-traits has in addition."""


def build(folder: Path) -> str:
    """Write both packages with the names of the specs; return the folder, for ``PYTHONPATH``.

    Nova, Placement and cpu-tiers import the packages from there, and Placement writes the names
    to its database when it starts.
    """
    for library in (os_resource_classes, os_traits):
        source = Path(library.__file__).parent
        shutil.copytree(source, folder / source.name)
    classes = folder / "os_resource_classes" / "__init__.py"
    with classes.open("a") as file:
        file.write('\nVCPU_SHARES = "VCPU_SHARES"\nSTANDARDS.append(VCPU_SHARES)\n')
    memory = folder / "os_traits" / "memory"
    memory.mkdir()
    for package, names in zip((folder / "os_traits" / "hw", memory), NAMES, strict=True):
        with (package / "__init__.py").open("a") as file:
            file.write(f"\nTRAITS = {list(names)}\n")
    return str(folder)


def run_later(folder: Path, module: str) -> None:
    """Run a module of tests in a process that has the later libraries.

    :param folder: an empty folder for the libraries.
    """
    environment = {name: value for name, value in os.environ.items() if name != FOLDER}
    environment["PYTHONPATH"] = os.pathsep.join((build(folder), str(ROOT)))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", module],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
