"""The help of each command, on narrow terminals."""

import subprocess
import sys
from argparse import ArgumentParser
from importlib.metadata import EntryPoint

import pytest

from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.frame.command_table import commands, description
from cpu_tiers.tools.frame.terminal import fit_help


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("command", commands().values(), ids=lambda c: c.name)
def test_no_line_is_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, command: EntryPoint, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = command.name
    parser = command.load()(CpuTiersApp(), None, cmd_name=name).get_parser(f"cpu-tiers {name}")
    lines = parser.format_help().splitlines()
    assert [line for line in lines if len(line) > columns] == []


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


def parser(prog: str) -> ArgumentParser:
    made = ArgumentParser(prog=prog, add_help=False)
    made.add_argument("-f", "--format", choices=["json", "table"], help="the format")
    made.add_argument("-n", "--names", action="store_true")
    pair = made.add_mutually_exclusive_group()
    pair.add_argument("--capabilities", metavar="FILE")
    pair.add_argument("--connect", metavar="URI")
    fit_help(made)
    return made


def test_a_usage_with_a_long_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "56")
    options = ["[-f {json,table}]", "[-n]", "[--capabilities FILE | --connect URI]"]
    # argparse would write 18 more spaces for the second, and 65 columns. Python 3.13 breaks lines
    # also between the options of a group.
    for program in ("p", "program with commands"):
        usage = parser(program).format_usage()
        assert " ".join(usage.split()) == " ".join(["usage:", program, *options])
        assert 32 < max(map(len, usage.splitlines())) <= 56


def test_choices_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = parser("p").format_help()
    assert "  -f, --format {json,table}\n" in text
    assert "  -n, --names" in text
