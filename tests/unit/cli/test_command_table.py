"""The list of the commands, which imports none of them."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.frame.command_table import commands, description


@pytest.mark.parametrize("command", commands().values(), ids=lambda c: c.name)
def test_the_list_has_the_description_of_each_command(command: EntryPoint) -> None:
    described = command.load()(CpuTiersApp(), None, cmd_name=command.name).get_description()
    assert description(command) == described.splitlines()[0]


def test_the_list_of_the_commands_imports_none() -> None:
    program = (
        "import sys\n"
        "from contextlib import suppress\n"
        "from cpu_tiers.tools.frame.app import main\n"
        "with suppress(SystemExit):\n"
        "    main(['--help'])\n"
        f"modules = {[command.module for command in commands().values()]}\n"
        "sys.exit(' '.join(sys.modules.keys() & {*modules, 'keystoneauth1', 'requests'}) or None)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert all(name in ran.stdout for name in commands())
