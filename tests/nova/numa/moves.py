"""``cpu-tiers`` beside Nova's services, on hosts that report their NUMA nodes or are going to."""

from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.nova.options import CONF
from tests.nova.command_line import Commands, Said
from tests.nova.numa.hosts import MEMORY_KB, Hosts

__all__ = ["HUGE_MB", "NUMA", "PINNED", "Moves"]

HALF_MB = MEMORY_KB // 2**10 // 2
HUGE_MB = 1024
NUMA = {"hw:numa_nodes": "2"}
PINNED = {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "2MB"}


class Moves(Commands, Hosts):
    """Hosts of two nodes, each of 2 shared CPUs, 2 dedicated ones and 1 GiB of huge pages."""

    def setUp(self) -> None:
        super().setUp()
        self.flags(cpu_shared_set="0-1,4-5", cpu_dedicated_set="2-3,6-7", group="compute")
        self.flags(initial_cpu_allocation_ratio=2.0)
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.placement_is_down = False
        self.wanted = "true"

    def start_host(self, name: str, nodes: int = 2, mempages: Any = None) -> str:
        pages = [(4, (HALF_MB - HUGE_MB) * 256), (2048, HUGE_MB // 2)]
        both = {cell: fakelibvirt.create_mempages(pages) for cell in (0, 1)}
        uuid = super().start_host(name, nodes, both)
        xml = self.computes[name].driver._host.get_connection().getCapabilities()
        (self.folder / f"{name}.xml").write_text(xml)
        return uuid

    def nova_conf(self) -> Path:
        path = super().nova_conf()
        placement = "" if self.placement_is_down else path.read_text()
        path.write_text(
            f"{placement}\n[DEFAULT]\nreserved_host_memory_mb = 0\n"
            f"initial_cpu_allocation_ratio = {CONF.initial_cpu_allocation_ratio}\n"
            f"[compute]\nenable_numa_reporting_to_placement = {self.wanted}\n"
            f"cpu_shared_set = {CONF.compute.cpu_shared_set or ''}\n"
            f"cpu_dedicated_set = {CONF.compute.cpu_dedicated_set or ''}\n"
            f"[libvirt]\nreport_vcpu_shares = {CONF.libvirt.report_vcpu_shares}\n"
        )
        return path

    def ask(self, command: str, *arguments: object, host: str = "one", status: int = 0) -> Said:
        """Run ``reshape plan`` or ``reshape apply`` with a host's capabilities."""
        where = ("--host", host) if command == "plan" else ()
        given = (*where, "--capabilities", self.folder / f"{host}.xml", *arguments)
        return self.run_command("reshape", command, *map(str, given), status=status)

    def goes_to(self, *arguments: object, host: str = "one") -> dict[str, Any]:
        rows = self.ask("plan", *arguments, host=host).rows
        assert all(row["host"] == host and row["fits"] and not row["reason"] for row in rows)
        return {row["consumer"]: row["goes_to"] for row in rows}

    def offline(self, *arguments: object, host: str = "one") -> dict[str, Any]:
        """Plan while Placement is down."""
        self.placement_is_down = True
        with mock.patch("cpu_tiers.placement.client.PlacementClient.__init__") as asked:
            found = self.goes_to("--offline", *arguments, host=host)
        self.placement_is_down = False
        asked.assert_not_called()
        return found

    def refused(self, host: str, *arguments: object) -> dict[str, str]:
        """Return who does not fit, and why."""
        rows = self.ask("plan", *arguments, host=host, status=1).rows
        return {row["consumer"]: row["reason"] for row in rows if not row["fits"]}
