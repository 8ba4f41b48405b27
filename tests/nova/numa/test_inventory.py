"""``cpu-tiers inventory`` and nova-compute report the same tree of a host."""

import re
from typing import Any
from unittest import mock

from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import host

from tests.nova.computes import FAKE
from tests.nova.numa.moves import Moves

DISK_GB = 128
"""Nova's fake libvirt has so much."""


class TestInventory(Moves):
    def setUp(self) -> None:
        super().setUp()
        self.reporting(True)
        self.nodes(True)
        self.flags(reserved_host_memory_mb=513, ram_allocation_ratio=1.5)

    def sync(self) -> Any:
        """Return what ``inventory sync`` changes."""
        path = str(self.commands.capabilities("one"))
        disk = ("--disk-gb", str(DISK_GB))
        return self.commands.run(
            "inventory", "sync", "--capabilities", path, "--hostname", "one", *disk
        ).rows

    def test_sync_finds_nothing_to_change(self) -> None:
        self.start_host("one")
        before = self.tree.generations("one")
        assert self.sync() == []
        assert self.tree.generations("one") == before

    def test_cpus_that_are_offline(self) -> None:
        """libvirt leaves them out of its capabilities, as the kernel leaves them out of nodes."""
        self.flags(cpu_shared_set=None, cpu_dedicated_set=None, group="compute")
        self.flags(reserved_host_cpus=1)
        with (
            without_cpu("7"),
            mock.patch.object(host.Host.get_online_cpus, "return_value", set(range(7))),
        ):
            self.start_host("one")
            assert self.tree.totals("one")["one_NUMA1"]["VCPU"] == 3
            assert self.sync() == []

    def test_dedicated_cpus_that_nova_powers_down(self) -> None:
        with without_cpu("3", from_call=2):
            self.start_host("one")
            self._run_periodics()
        assert self.tree.totals("one")["one_NUMA0"]["PCPU"] == 2


def without_cpu(number: str, *, from_call: int = 1) -> Any:
    """Return a context in which libvirt leaves a CPU out of its capabilities."""
    path = f"{FAKE}.Connection.getCapabilities"
    own, calls = fakelibvirt.Connection.getCapabilities, list[str]()

    def getCapabilities(connection: Any) -> str:  # noqa: N802
        calls.append(number)
        text: str = own(connection)
        if len(calls) < from_call:
            return text
        return re.sub(rf"<cpu id=['\"]{number}['\"][^>]*/>", "", text)

    return mock.patch(path, getCapabilities)
