"""``networking show`` and ``sync``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient

Command = Callable[..., Any]
EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"


@pytest.fixture
def agent(save: Command) -> Callable[..., str]:
    """Write an agent as ``openstack network agent show -f json`` prints it."""

    def agent(**bandwidths: int) -> str:
        rates = {device: {"egress": rate, "ingress": None} for device, rate in bandwidths.items()}
        configuration = {
            "bridge_mappings": {f"net-{device}": device for device in bandwidths},
            "resource_provider_bandwidths": rates,
            "resource_provider_hypervisors": dict.fromkeys(bandwidths, "compute1"),
            "resource_provider_inventory_defaults": {"reserved": 100},
        }
        document = {"agent_type": "Open vSwitch agent", "host": "c1"}
        return str(save({**document, "configuration": configuration}, "agent.json"))

    return agent


def test_show(run: Command, agent: Command) -> None:
    trait = "--device-trait=br1=CUSTOM_GUARANTEED_BW"
    types = [f"--prohibit-vnic-type={name}" for name in ("direct", "smart-nic", "vdpa")]
    shown = run("networking", "show", agent(br1=1000), trait, *types, "-f", "json")
    _, device = json.loads(shown.stdout)
    assert device["name"] == "compute1:Open vSwitch agent:br1"
    assert device["parent"] == "compute1:Open vSwitch agent"
    assert device["inventories"][EGRESS]["total"] == 1000
    assert device["inventories"][EGRESS]["reserved"] == 100
    assert device["traits"] == [
        "CUSTOM_GUARANTEED_BW",
        "CUSTOM_PHYSNET_NET_BR1",
        "CUSTOM_VNIC_TYPE_NORMAL",
    ]


def test_a_list_of_agents(run: Command, save: Command) -> None:
    result = run("networking", "show", save("[]", "agents.json"), status=1)
    assert "a list of agents; give the output of openstack network agent show" in result.stderr


def test_sync(run: Command, agent: Command, client: PlacementClient, placement_conf: Path) -> None:
    def sync(status: int = 0, **bandwidths: int) -> Any:
        conf = ("--config-file", placement_conf)
        arguments = ("networking", "sync", agent(**bandwidths), *conf, "-f", "json")
        return run(*arguments, status=status)

    assert "Placement has no provider compute1; start nova-compute" in sync(1, br1=500).stderr
    client.create_provider("compute1")
    assert "provider" in [change["what"] for change in json.loads(sync(br1=500).stdout)]
    again = sync(br1=500)
    assert (json.loads(again.stdout), again.stderr) == (
        [],
        "Placement is up to date: nothing was changed.\n",
    )
    assert json.loads(sync(br1=700).stdout) == [
        {
            "provider": "compute1:Open vSwitch agent:br1",
            "what": f"{EGRESS} total",
            "before": "500",
            "after": "700",
        }
    ]


def test_devices_written_for_further_hosts_are_named(
    run: Command, save: Command, client: PlacementClient, placement_conf: Path
) -> None:
    client.create_provider("compute1")
    configuration = {
        "bridge_mappings": {"net": "br1", "other": "br2"},
        "resource_provider_bandwidths": {"br1": {"egress": 7}, "br2": {"egress": 7}},
        "resource_provider_hypervisors": {"br1": "compute1", "br2": "compute2"},
    }
    document = {"agent_type": "NIC Switch agent", "host": "c1", "configuration": configuration}
    arguments = (save(document), "--config-file", placement_conf)
    told = run("networking", "sync", *arguments, status=1).stderr
    assert "Placement has no provider compute2" in told
    assert "\nwritten: compute1:NIC Switch agent:br1: provider absent -> " in told
    assert "Nothing was written" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device-trait", "br1"], "--device-trait: got 'br1'; give DEVICE=TRAIT"),
        (["--device-trait", "br2=CUSTOM_A"], "device br2: no agent reports it"),
        (["no-such-file.json"], "no-such-file.json: cannot be read"),
    ],
)
def test_refused(run: Command, agent: Command, arguments: list[str], message: str) -> None:
    refused = run("networking", "show", agent(br1=500), *arguments, status=1)
    assert message in refused.stderr
