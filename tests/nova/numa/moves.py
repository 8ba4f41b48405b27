"""``cpu-tiers`` beside Nova's services, on hosts that report their NUMA nodes or are going to."""

from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.nova.options import CONF
from tests.nova.command_line import CommandLine, Said
from tests.nova.computes import Computes
from tests.nova.kinds import Kind
from tests.nova.numa.hosts import MEMORY_KB, NODES, hardware

HALF_MB = MEMORY_KB // 2**10 // 2
HUGE_MB = 1024
NUMA = {"hw:numa_nodes": "2"}
PINNED = {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "2MB"}
OF_THE_HOST = (
    "initial_cpu_allocation_ratio",
    "ram_allocation_ratio",
    "reserved_host_cpus",
    "reserved_host_memory_mb",
)
"""Options of ``[DEFAULT]`` that the nova.conf of the commands has as the host has them."""


def with_huge_pages() -> Any:
    """Return a host of two nodes, each with 1 GiB of huge pages."""
    pages = [(4, (HALF_MB - HUGE_MB) * 256), (2048, HUGE_MB // 2)]
    return hardware(2, {cell: fakelibvirt.create_mempages(pages) for cell in (0, 1)})


MOVING = Kind(
    options={
        **NODES.options,
        "compute": {"cpu_shared_set": "0-1,4-5", "cpu_dedicated_set": "2-3,6-7"},
        "DEFAULT": {"initial_cpu_allocation_ratio": 2.0, "reserved_host_memory_mb": 0},
    },
    hardware=with_huge_pages,
)
"""Hosts of two nodes, each of 2 shared CPUs, 2 dedicated ones and 1 GiB of huge pages."""


class MoveCommands(CommandLine):
    """``cpu-tiers reshape`` beside hosts of the kind :data:`MOVING`."""

    def __init__(self, cloud: Computes) -> None:
        super().__init__(cloud)
        self.folder = Path(cloud.useFixture(fixtures.TempDir()).path)
        self.placement_is_down = False
        self.wanted = "true"
        """What the nova.conf of the commands says of reporting nodes."""

    def capabilities(self, host: str) -> Path:
        """Write what libvirt says of a host to a file; return its path."""
        path = self.folder / f"{host}.xml"
        connection = self.cloud.computes[host].driver._host.get_connection()
        path.write_text(connection.getCapabilities())
        return path

    def nova_conf(self) -> Path:
        path = super().nova_conf()
        placement = "" if self.placement_is_down else path.read_text()
        values = {name: CONF[name] for name in OF_THE_HOST if CONF[name] is not None}
        options = "".join(f"{name} = {value}\n" for name, value in values.items())
        path.write_text(
            f"{placement}\n[DEFAULT]\n{options}"
            f"[compute]\nenable_numa_reporting_to_placement = {self.wanted}\n"
            f"cpu_shared_set = {CONF.compute.cpu_shared_set or ''}\n"
            f"cpu_dedicated_set = {CONF.compute.cpu_dedicated_set or ''}\n"
            f"[libvirt]\nreport_vcpu_shares = {CONF.libvirt.report_vcpu_shares}\n"
        )
        return path

    def ask(self, command: str, *arguments: object, host: str = "one", status: int = 0) -> Said:
        """Run ``reshape plan`` or ``reshape apply`` with a host's capabilities."""
        where = ("--host", host) if command == "plan" else ()
        given = (*where, "--capabilities", self.capabilities(host), *arguments)
        return self.run("reshape", command, *map(str, given), status=status)

    def goes_to(self, *arguments: object, host: str = "one") -> dict[str, Any]:
        """Plan a reshape in which all consumers fit; return where each of them goes."""
        rows = self.ask("plan", *arguments, host=host).rows
        assert all(row["host"] == host and row["fits"] and not row["reason"] for row in rows)
        return {row["consumer"]: row["goes_to"] for row in rows}

    def offline(self, *arguments: object, host: str = "one") -> dict[str, Any]:
        """Plan while Placement is down."""
        self.placement_is_down = True
        with mock.patch("cpu_tiers.tools.placement.client.PlacementClient.__init__") as asked:
            consumers = self.goes_to("--offline", *arguments, host=host)
        self.placement_is_down = False
        asked.assert_not_called()
        return consumers

    def refused(self, host: str, *arguments: object) -> dict[str, str]:
        """Return who does not fit, and why."""
        rows = self.ask("plan", *arguments, host=host, status=1).rows
        return {row["consumer"]: row["reason"] for row in rows if not row["fits"]}


class Moves(Computes):
    """Hosts of the kind :data:`MOVING`, and the commands beside them."""

    kind = MOVING

    def setUp(self) -> None:
        super().setUp()
        self.commands = MoveCommands(self)
