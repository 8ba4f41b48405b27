"""The commands that write to Placement, each with the hosts and servers before the command."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.tools.writers.plan_file import digest_of
from tests.databases import hosts

HOST = hosts.NAMES[0]
SERVERS = tuple(f"{number}a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11" for number in range(3))
HELD = {"VCPU": 2, "MEMORY_MB": 1024}
REPORT = "[libvirt]\nreport_vcpu_shares = true\n"
NUMA = f"{REPORT}[compute]\nenable_numa_reporting_to_placement = true\n"


@dataclass(frozen=True, kw_only=True)
class WritingCommand:
    """A command that writes to Placement.

    :param prepare: writes the hosts and servers that Placement has before.
    :param words: the command with the names of the files in the folder of :func:`write_files`.
    :param options: of nova.conf, beside the section ``[placement]``.
    """

    words: str
    prepare: Callable[[PlacementClient], None]
    options: str = NUMA
    name: str = ""

    def __str__(self) -> str:
        return self.name or " ".join(self.words.split()[:2])

    def arguments(self, conf: Path) -> Sequence[str]:
        """Return the arguments, after writing nova.conf."""
        with conf.open("a") as file:
            file.write(self.options)
        if self.words.startswith("heal"):
            return ["heal", str(conf), HOST]
        return ["--config-file", str(conf), *self.words.split()]


def _nothing(_: PlacementClient) -> None:
    """Leave Placement empty."""


def _host(client: PlacementClient) -> None:
    sync(client, hosts.tree(HOST, has_nodes=False))


def _servers(client: PlacementClient) -> None:
    """Add a host with three servers without shares."""
    _host(client)
    root = client.find_provider(HOST)
    assert root is not None
    request = AllocationRequest(allocations={root.uuid: HELD})
    for server in SERVERS:
        claim(client, server, request, project_id="p", user_id="u")


_CAPABILITIES = f"--capabilities capabilities.xml --hostname {HOST} --disk-gb"

COMMANDS = (
    WritingCommand(words=f"inventory sync {_CAPABILITIES} 2000", prepare=_nothing),
    WritingCommand(
        words=f"inventory sync {_CAPABILITIES} 3000",
        prepare=_servers,
        options=f"{REPORT}[DEFAULT]\nreserved_host_cpus = 2\n",
        name="inventory sync of a host with servers",
    ),
    WritingCommand(words="networking sync agent.json", prepare=_host),
    WritingCommand(
        words="reshape apply plan.json --capabilities capabilities.xml", prepare=_servers
    ),
    WritingCommand(words="heal", prepare=_servers, name="allocation heal"),
)


def write_files(folder: Path) -> None:
    """Write the capabilities of the host, a network agent, and a plan that moves the servers."""
    cells = "".join(
        f"<cell id='{cell}'><memory unit='KiB'>{16 * 2**20}</memory><cpus num='8'>"
        + "".join(
            f"<cpu id='{cpu}' socket_id='{cell}' die_id='0' core_id='{cpu}' siblings='{cpu}'/>"
            for cpu in range(8 * cell, 8 * cell + 8)
        )
        + "</cpus></cell>"
        for cell in (0, 1)
    )
    (folder / "capabilities.xml").write_text(
        "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology>"
        f"<cells num='2'>{cells}</cells></topology></host></capabilities>"
    )
    configuration = {
        "bridge_mappings": {"physnet0": "br0", "physnet1": "br1"},
        "resource_provider_bandwidths": {
            bridge: {"egress": 1000, "ingress": 1000} for bridge in ("br0", "br1")
        },
        "resource_provider_hypervisors": dict.fromkeys(("br0", "br1"), HOST),
        "resource_provider_inventory_defaults": {"reserved": 100},
    }
    agent = {"agent_type": "Open vSwitch agent", "host": HOST, "configuration": configuration}
    (folder / "agent.json").write_text(json.dumps(agent))
    consumers = {
        server: {
            "name": f"server {server}",
            "held": {**HELD, VCPU_SHARES: 200},
            "resources": {
                f"{HOST}_NUMA{number % 2}": {"VCPU": 2, VCPU_SHARES: 200},
                f"{HOST}_NUMA{number % 2}_PAGES_4": {"MEMORY_MB": 1024},
            },
        }
        for number, server in enumerate(SERVERS)
    }
    plan = {"host": HOST, "consumers": consumers, "digest": digest_of(HOST, consumers)}
    (folder / "plan.json").write_text(json.dumps(plan))
