"""``cpu-tiers flavor show``."""

import json
from collections.abc import Callable
from typing import Any

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
