"""``cpu-tiers flavor show``."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.simulation import CloudProvider
from cpu_tiers.tools.simulation.snapshot import Snapshot

Command = Callable[..., Any]


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


def test_what_a_server_is_sold(run: Command, flavor: Command, save: Command) -> None:
    """100 of 600 shares of one CPU, on each of two hosts."""
    inventories = {
        "VCPU": Inventory(total=1, max_unit=1, allocation_ratio=6.0),
        "CUSTOM_VCPU_SHARES": Inventory(total=100, max_unit=100, allocation_ratio=6.0),
    }
    hosts = tuple(
        CloudProvider(uuid=name, name=name, inventories=inventories) for name in ("a", "b")
    )
    snapshot = save(Snapshot(providers=hosts, consumers={}).to_json(), "cloud.json")
    gold = flavor({"quota:cpu_shares_multiplier": "100"}, vcpus=1, ram=512)
    arguments = ("flavor", "show", gold, "--hosts", "--snapshot", snapshot)
    shown = json.loads(run(*arguments, "-f", "json").stdout)
    assert shown["shares"] == 100
    (kind,) = shown["hosts"]
    assert (kind["hosts"], kind["cpus"], kind["scs_class"]) == (2, 1, None)
    assert (kind["sold_cpus"], kind["promised_cpus"]) == pytest.approx((1 / 6, 1 / 6))
    text = "2 of 1 CPUs: sold 0.167 CPUs, kept when full 0.167"
    assert text in run(*arguments).stdout
