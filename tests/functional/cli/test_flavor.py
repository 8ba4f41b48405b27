"""``cpu-tiers flavor check`` and ``flavor show``."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


GOLD = {"quota:cpu_shares_multiplier": "100.0"}


def test_flavor_show(run: Command, flavor: Command, save: Command) -> None:
    """The example of use-pcpu-vcpu-in-one-instance: 3 + 5 CPUs over two nodes."""
    specs = {"hw:numa_nodes": "2", "resources:VCPU": "3", "resources:PCPU": "5"}
    image = save({"name": "i", "properties": {"hw_cpu_thread_policy": "require"}}, "image.json")
    arguments = ("flavor", "show", flavor(specs, vcpus=8, ram=512), "--image", image)
    assert json.loads(run(*arguments, "-f", "json").stdout) == {
        "flavor": "gold",
        "vcpus": 8,
        "cpu_policy": "mixed",
        "cpu_thread_policy": "require",
        "emulator_threads_policy": None,
        "host_cpu_overhead": 0,
        "page_size": None,
        "dedicated_cpus": "2-3,5-7",
        "realtime_cpus": "",
        "cells": [
            {"id": 0, "cpuset": "0-1", "pcpuset": "2-3", "memory_mb": 256},
            {"id": 1, "cpuset": "4", "pcpuset": "5-7", "memory_mb": 256},
        ],
    }
    assert "node 1: shared 4, dedicated 5-7, 256 MiB" in run(*arguments).stdout


def test_flavor_check(run: Command, flavor: Command) -> None:
    result = run("flavor", "check", flavor(GOLD), "-f", "json")
    assert json.loads(result.stdout) == []
    assert result.stderr == "flavors: 1, faults: 0\n"


def test_flavor_check_lists_every_fault_of_every_flavor(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor({**GOLD, "quota:cpu_shares": "100", "trait:NOPE": "maybe"})
    other = save("no json", "other.json")
    result = run("flavor", "check", path, other, "-f", "json", status=1)
    assert [(row["file"], row["where"]) for row in json.loads(result.stdout)] == [
        (path, "flavor gold, extra spec trait:NOPE"),
        (path, "flavor gold, extra spec trait:NOPE"),
        (
            path,
            "flavor gold, extra specs quota:cpu_shares_multiplier and quota:cpu_shares",
        ),
        (other, other),
    ]
    assert "flavors: 2, faults: 4" in result.stderr


PAGES = {"hw:mem_page_size": "2MB"}


BROKEN = ("flavor gold, NUMA node 0", "4095 MiB: not a multiple of the page size of 2048 kB")


@pytest.mark.parametrize(
    ("properties", "faults"),
    [
        pytest.param(
            {
                "hw:numa_nodes": "2",
                "hw:numa_cpus.0": "0,1",
                "hw:numa_cpus.1": "1",
                "hw:numa_mem.0": "1000",
                "hw:numa_mem.1": "3000",
            },
            [
                ("flavor gold, extra spec hw:numa_cpus.1", "'1'"),
                ("flavor gold, extra spec hw:numa_cpus.0", "no node has the vCPUs 2-3"),
                ("flavor gold, hw:numa_mem.N", "4000 MiB in all"),
            ],
            id="CPUs twice and missing, memory that does not add up",
        ),
        pytest.param(
            {"hw:numa_nodes": "2"},
            [("flavor gold, 2 NUMA nodes", "4 vCPUs and 4095 MiB")],
            id="nodes that do not divide",
        ),
        pytest.param({"hw:numa_nodes": "1"} | PAGES, [BROKEN], id="broken pages"),
        pytest.param(
            {"hw:numa_nodes": "x"},
            [("flavor gold, extra spec hw:numa_nodes", "got 'x'")],
            id="no number",
        ),
    ],
)
def test_flavor_check_looks_at_numa_nodes(
    run: Command, flavor: Command, properties: dict[str, str], faults: list[tuple[str, str]]
) -> None:
    path = flavor(properties, vcpus=4, ram=4095)
    result = run("flavor", "check", path, "-f", "json", status=1)
    assert [(row["where"], row["given"]) for row in json.loads(result.stdout)] == faults


def test_flavor_check_asks_as_the_scheduler_does(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor(PAGES, ram=4095)  # Nova makes one node of it; asked for where that is on
    on = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "nova.conf")
    run("flavor", "check", path)
    run("flavor", "check", path, "--config-file", on, "--no-numa")
    for asking in (("--numa",), ("--config-file", on)):
        result = run("flavor", "check", path, *asking, "-f", "json", status=1)
        (row,) = json.loads(result.stdout)
        assert (row["where"], row["given"]) == BROKEN
