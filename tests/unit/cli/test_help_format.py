"""The help of each command, on narrow terminals."""

from argparse import ArgumentParser
from importlib.metadata import EntryPoint

import pytest

from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.frame.command_table import commands
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
