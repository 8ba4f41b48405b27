"""How Nova finds ``compute_driver = cpu_tiers.LibvirtDriver``: the wheel, and the launcher.

Nova is laid out anew, by links to the one that is installed, so that nothing
of ours that is installed with it helps.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import nova
import pytest

ROOT = Path(__file__).parents[2]
LOAD = "from oslo_utils import importutils; import nova;"
SHOW = (
    "found = importutils.import_class('nova.virt.cpu_tiers.LibvirtDriver');"
    "print(found.__module__, found.__mro__[1].__module__, nova.__file__)"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, the wheel, and the wheel unpacked in ``site``."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")  # noqa: S202  # it is ours
    return folder


@pytest.fixture
def nova_site(tmp_path: Path) -> Path:
    """A site directory with Nova in it, and nothing of ours."""
    installed = Path(nova.__file__).parent
    (tmp_path / "nova" / "virt").mkdir(parents=True)
    for folder, left_out in (("", "virt"), ("virt", "cpu_tiers")):
        for entry in (installed / folder).iterdir():
            if entry.name not in (left_out, "__pycache__"):
                (tmp_path / "nova" / folder / entry.name).symlink_to(entry)
    return tmp_path


def run(code: str, *path: Path, arguments: tuple[str, ...] = ()) -> str:
    """Run code with these directories before all others; return what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        cwd="/",
        capture_output=True,
        text=True,
    )
    return result.stdout if result.returncode == 0 else result.stderr.strip().splitlines()[-1]


def test_beside_nova_the_wheel_is_enough(built: Path, nova_site: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        archive.extractall(nova_site)  # noqa: S202  # as pip does, and it is ours
    assert run(LOAD + SHOW, nova_site) == (
        "cpu_tiers.nova.compute.driver nova.virt.libvirt.driver"
        f" {nova_site / 'nova' / '__init__.py'}\n"
    )


def test_the_wheel_does_not_hide_a_nova_that_lies_elsewhere(built: Path, nova_site: Path) -> None:
    nova_file = str(nova_site / "nova" / "__init__.py")
    assert run("import nova; print(nova.__file__)", built / "site", nova_site) == f"{nova_file}\n"
    says = run(LOAD + SHOW, built / "site", nova_site)
    assert "No module named 'nova.virt.cpu_tiers'" in says  # why there is a launcher


def test_apart_from_nova_the_launcher_registers_the_driver(built: Path, nova_site: Path) -> None:
    code = (
        "import sys, nova.cmd.compute as command;"
        f"command.main = lambda: exec('''{LOAD}{SHOW}; print(sys.argv[0])''');"
        "from cpu_tiers.nova.compute import launcher; launcher.main()"
    )
    assert run(code, built / "site", nova_site) == (
        "cpu_tiers.nova.compute.driver nova.virt.libvirt.driver "
        f"{nova_site / 'nova' / '__init__.py'}\nnova-compute\n"
    )


def test_the_launcher_is_nova_compute(built: Path, nova_site: Path) -> None:
    code = "from cpu_tiers.nova.compute.launcher import main; main()"
    shown = run(code, built / "site", nova_site, arguments=("--version",))
    same = run("from nova.cmd.compute import main; main()", nova_site, arguments=("--version",))
    assert shown == same != ""


def test_the_launcher_loads_the_driver_when_nova_asks_for_the_driver(
    built: Path, nova_site: Path
) -> None:
    code = (
        "import sys; from cpu_tiers.nova.compute import launcher; launcher.register();"
        "import nova.virt; print([m for m in sys.modules if m == 'nova.virt.libvirt.driver'])"
    )
    assert run(code, built / "site", nova_site) == "[]\n"


def test_the_sdist_has_the_sources_of_the_wheel(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    assert any(name.endswith("/packaging/nova_virt_cpu_tiers.py") for name in names)
    assert any(name.endswith("/nova-compute.service.d/cpu-tiers.conf") for name in names)


def test_the_installed_package_has_the_virt_module() -> None:
    assert run("import nova.virt.cpu_tiers as m; print(m.__all__)") == "['LibvirtDriver']\n"
