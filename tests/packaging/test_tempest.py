"""Tempest finds the plugin of the installed wheel, its options and its tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TEMPEST = Path(sys.executable).parent / "tempest"
PAGE = Path(__file__).parents[2] / "docs" / "install" / "tempest.rst"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder from which Tempest runs, with a sample of tempest.conf."""
    folder = tmp_path_factory.mktemp("tempest")
    output_of(folder, "init", "cloud", "--workspace-path", str(folder / "list.yaml"))
    return folder / "cloud"


def output_of(folder: Path, *arguments: str) -> str:
    """Return what Tempest prints, without a configuration of the user."""
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [str(TEMPEST), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def options(lines: str) -> set[str]:
    """Return the names of the options in the section of the plugin."""
    section = lines.partition("[cpu_tiers]\n")[2].partition("\n[")[0]
    return set(re.findall(r"^ *#?(\w+) = ", section, re.MULTILINE))


def test_the_plugin_and_its_options(workspace: Path) -> None:
    assert "cpu_tiers_tempest_plugin.plugin:CpuTiersPlugin" in output_of(workspace, "list-plugins")
    sample = options((workspace / "etc" / "tempest.conf.sample").read_text())
    assert sample == {"resource_class", "tiers", "multiplier", "refuse_faulty_flavors"}
    assert options(PAGE.read_text().partition("\nThe flavors")[0]) == sample


def test_the_tests(workspace: Path) -> None:
    listed = output_of(workspace, "run", "--list-tests", "--regex", "^cpu_tiers_tempest_plugin")
    tests = re.findall(r"(\w+Test)\.(\w+)\[id-", listed)
    moves = {
        "test_allocation_of_each_tier",
        "test_live_migration",
        "test_resize_and_confirm",
        "test_resize_and_revert",
    }
    assert len(tests) == 10
    assert set(tests) == {
        *((kind, move) for kind in ("MultiplierTest", "PairTest") for move in moves),
        ("RefusalTest", "test_boot"),
        ("RefusalTest", "test_resize"),
    }
