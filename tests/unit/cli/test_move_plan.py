"""The arguments and the file of a plan of moves to NUMA nodes."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.writers.reshape import add_plan_arguments, read_tree, save, wants_moves

ON = "[compute]\nenable_numa_reporting_to_placement = true\n"


def parsed(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    add_plan_arguments(parser)
    return parser.parse_args(arguments)


def conf(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    (tmp_path / "nova.conf").write_text(text)
    return read_config([str(tmp_path / "nova.conf")])


@pytest.mark.parametrize(
    ("text", "arguments", "moves"),
    [
        pytest.param(ON, ("--capabilities", "f"), True, id="on, with the host"),
        pytest.param(ON, ("--connect", "qemu:///system", "--offline"), True, id="on, offline"),
        pytest.param("", (), False, id="not set"),
        pytest.param(ON.replace("true", "false"), (), False, id="off"),
    ],
)
def test_wants_moves(tmp_path: Path, text: str, arguments: tuple[str, ...], moves: bool) -> None:
    assert wants_moves(parsed(*arguments), conf(tmp_path, text)) is moves


@pytest.mark.parametrize(
    ("text", "arguments", "given"),
    [
        pytest.param(ON, (), "true, but the NUMA nodes of the host are unknown", id="no host"),
        pytest.param("", ("--capabilities", "f"), "not true", id="a host without moves"),
        pytest.param("", ("--offline",), "not true", id="offline without moves"),
        pytest.param("", ("--save", "f"), "not true", id="a file without moves"),
    ],
)
def test_arguments_that_contradict_nova_conf(
    tmp_path: Path, text: str, arguments: tuple[str, ...], given: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        wants_moves(parsed(*arguments), conf(tmp_path, text))
    (fault,) = error.value.faults
    assert fault.given.startswith(given)


def test_a_tree_without_numa_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"give the future nova[.]conf of the host one"):
        read_tree(parsed("--capabilities", "f"), conf(tmp_path, ""), "one")


def empty_plan() -> Any:
    return SimpleNamespace(host="höst", relocations=())


def test_a_plan_is_saved_as_json(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    save(empty_plan(), str(path))
    assert json.loads(path.read_text(encoding="utf-8"))["host"] == "höst"


@pytest.mark.parametrize("name", ["no/such/folder", "nul\0byte"])
def test_a_file_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be written .*name another file"):
        save(empty_plan(), str(tmp_path / name))
