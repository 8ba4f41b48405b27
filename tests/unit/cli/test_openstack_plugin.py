"""The plugin of the openstack client, and what it costs the other commands of the client."""

import sys
from argparse import ArgumentParser
from importlib.metadata import EntryPoint, entry_points
from subprocess import run

import pytest

from cpu_tiers.tools.frame import openstack_plugin
from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.frame.command_table import commands

COMMANDS = list(entry_points(group="openstack.cpu_tiers.v1"))


def loaded_by(code: str) -> set[str]:
    """Return the modules that a process of its own has loaded after the code."""
    result = run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stdout.split())


def test_the_version_of_the_commands() -> None:
    parser = openstack_plugin.build_option_parser(ArgumentParser())
    assert parser.parse_args([]).os_cpu_tiers_api_version in openstack_plugin.API_VERSIONS


def test_a_foreign_openstack_command_loads_no_module_of_a_command() -> None:
    """``openstack`` loads the plugin and each entry point of its commands at each start."""
    code = """
from importlib.metadata import entry_points
from cliff.commandmanager import CommandManager
for plugin in entry_points(group="openstack.cli.extension", name="cpu_tiers"):
    plugin.load()
assert len(list(CommandManager("openstack.cpu_tiers.v1"))) > 10
"""
    loaded = loaded_by(code)
    ours = {name for name in loaded if name.partition(".")[0] == "cpu_tiers"}
    assert ours == {
        "cpu_tiers",
        "cpu_tiers.tools",
        "cpu_tiers.tools.frame",
        "cpu_tiers.tools.frame.command_table",
        "cpu_tiers.tools.frame.openstack_plugin",
    }
    assert not loaded & {"keystoneauth1", "requests", "oslo_config"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_client_command_is_the_command_of_the_program(command: EntryPoint) -> None:
    of_program = commands()[command.name.removeprefix("cpu_tier_").replace("_", " ")]
    created = command.load()(CpuTiersApp(), None, "cpu tier it")
    assert type(created) is of_program.load()
    assert created.cmd_name == "cpu tier it"


def test_the_plugin_has_only_the_classes_of_commands() -> None:
    with pytest.raises(AttributeError, match="has no command FlavorShows"):
        openstack_plugin.FlavorShows  # noqa: B018  # as the client reads an entry point


def test_the_program_loads_nothing_of_the_client() -> None:
    loaded = loaded_by("import cpu_tiers.tools.frame.app, cpu_tiers.tools.cloud.explain")
    assert not loaded & {"openstackclient", "osc_lib", "openstack"}


def test_the_program_loads_only_the_command_to_run() -> None:
    code = """
from cpu_tiers.tools.frame.app import main
assert main(["flavor", "show", "--help"]) == 0
"""
    ours = {name for name in loaded_by(code) if name.startswith("cpu_tiers.")}
    assert "cpu_tiers.tools.cloud.flavor_show" in ours
    assert len(ours) <= 60
    # Nothing that reads nova.conf, asks Placement or shows another command.
    assert not ours & {"cpu_tiers.conf", "cpu_tiers.tools.http", "cpu_tiers.placement"}
    assert not ours & {
        "cpu_tiers.tools.cloud.explain",
        "cpu_tiers.tools.cgroup",
        "cpu_tiers.tools.cloud_model",
    }


STARTS = {
    "cpu-tiers": ("from cpu_tiers.tools import run; run()", "cpu-tiers: "),
    "cpu-tiers-status": ("from cpu_tiers.tools import run_status; run_status()", "cpu-tiers: "),
    "openstack": (
        "from cpu_tiers.tools.frame.openstack_plugin import Explain; Explain(None, None)",
        "ModuleNotFoundError: ",
    ),
}


@pytest.mark.parametrize("program", STARTS)
def test_without_the_extra_a_program_names_the_extra(program: str) -> None:
    code, prefix = STARTS[program]
    missing = (
        "import importlib.util as u; u.find_spec = lambda name: name not in ('cliff', 'rich')"
    )
    start = [sys.executable, "-c", f"{missing}; {code}"]
    result = run(start, capture_output=True, text=True)
    advice = f"{prefix}the commands need cliff, rich: pip install 'cpu-tiers[tools]'"
    assert (result.returncode, result.stderr.splitlines()[-1]) == (1, advice)
