"""``cpu-tiers flavor pair``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]

GOLD = {"quota:cpu_shares_multiplier": "100"}
PAIR = {"quota:cpu_shares": "200", "resources:CUSTOM_VCPU_SHARES": "200"}


def test_the_commands_for_a_tier(run: Command, flavor: Command) -> None:
    result = run("flavor", "pair", flavor(GOLD, name="gold large", vcpus=2))
    assert result.stdout == (
        "openstack flavor set 'gold large' --property quota:cpu_shares=200"
        " --property resources:CUSTOM_VCPU_SHARES=200\n"
        "openstack flavor unset 'gold large' --property quota:cpu_shares_multiplier\n"
    )
    assert result.stderr == ""
    assert run("flavor", "pair", result.args[3], "-c", "flavor").stdout == result.stdout


def test_a_name_is_never_an_option(run: Command, flavor: Command) -> None:
    result = run("flavor", "pair", flavor(GOLD, name="--os-cloud=other"))
    assert [line.rpartition(" ")[2] for line in result.stdout.splitlines()] == (
        ["--os-cloud=other"] * 2
    )
    assert result.stdout.count(" -- --os-cloud=other\n") == 2


def test_a_list_of_flavors(run: Command, save: Command) -> None:
    columns = {"ID": "1", "RAM": 4096, "Disk": 1, "Ephemeral": 0, "VCPUs": 2, "Swap": 0}
    names = {"gold": GOLD, "plain": {}, "paired": PAIR, "weight": {"quota:cpu_shares": "200"}}
    rows = [{**columns, "Name": name, "Properties": specs} for name, specs in names.items()]
    result = run("flavor", "pair", save(rows), "-f", "json")
    assert json.loads(result.stdout) == [
        {"flavor": "gold", "properties": PAIR, "remove": ["quota:cpu_shares_multiplier"]},
        {"flavor": "weight", "properties": PAIR, "remove": []},
    ]
    assert result.stderr == (
        "flavor plain has no tier, and is left as it is\nflavor paired has its pair already\n"
    )


def test_a_refused_flavor_leaves_no_half_of_the_commands(run: Command, save: Command) -> None:
    columns = {"ID": "1", "RAM": 4096, "Disk": 1, "Ephemeral": 0, "VCPUs": 2, "Swap": 0}
    mixed = {**GOLD, "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}
    rows = [
        {**columns, "Name": "gold", "Properties": GOLD},
        {**columns, "Name": "mixed", "Properties": mixed},
        {**columns, "Name": "words", "Properties": {"quota:cpu_shares_multiplier": "gold"}},
    ]
    result = run("flavor", "pair", save(rows), status=1)
    assert result.stdout == ""
    assert "flavor mixed, extra spec quota:cpu_shares_multiplier: the weight" in result.stderr
    assert "flavor words, extra spec quota:cpu_shares_multiplier: got 'gold'" in result.stderr


def test_flavors_of_a_snapshot(run: Command, save: Command) -> None:
    flavors = [
        {"name": name, "vcpus": 2, "memory_mb": 512, "extra_specs": GOLD}
        for name in ("gold", "other")
    ]
    document = {"format": "cpu-tiers cloud snapshot", "version": 1, "masked": False}
    snapshot = save({**document, "providers": [], "consumers": {}, "flavors": flavors}, "s.json")
    for arguments, names in ((("--all",), ["gold", "other"]), (("--flavor", "other"), ["other"])):
        result = run("flavor", "pair", *arguments, "--snapshot", snapshot, "-f", "json")
        assert [row["flavor"] for row in json.loads(result.stdout)] == names


def test_missing_arguments_are_a_usage_error(run: Command, tmp_path: Path) -> None:
    result = run("flavor", "pair", status=2)
    assert "name a file with flavors, or give --flavor or --all" in result.stderr
