"""``cpu-tiers flavor show --hosts``."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot

Command = Callable[..., Any]


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
    text = "2 hosts with 1 shared CPU: sold 0.167 CPUs, kept when full 0.167"
    assert text in run(*arguments).stdout


def test_a_flavor_of_the_cloud(run: Command, save: Command) -> None:
    named = Flavor(name="two", vcpus=2, memory_mb=512, extra_specs={"hw:cpu_policy": "dedicated"})
    given = Snapshot(providers=(), consumers={}, flavors=(named,)).to_json()
    snapshot = save(given, "cloud.json")
    arguments = ("flavor", "show", "--flavor", "two", "--snapshot", snapshot, "-f", "json")
    shown = json.loads(run(*arguments).stdout)
    assert (shown["flavor"], shown["dedicated_cpus"]) == ("two", "0-1")
    assert "shares" not in shown  # no host is asked for
    assert json.loads(run(*arguments, "--hosts").stdout)["hosts"] == []
    for command in (("flavor", "show"), ("explain",)):
        for name in ("three", ""):
            asked = (*command, f"--flavor={name}", "--snapshot", snapshot)
            assert f"--flavor {name}: not a flavor of the snapshot" in run(*asked, status=1).stderr
