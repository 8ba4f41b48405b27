"""Pinned servers on hosts without ``[compute] cpu_dedicated_set``, before and after they report.

Nova pins such servers to any CPU of the host, and they hold VCPU.
"""

import logging

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import IMAGE, ONE_AND_THREE, PINNED, pinning_kind

LOGGER = "cpu_tiers.nova.compute.numa.numa_inventory"


class TestWithoutPcpu(LibvirtMigrationMixin, Computes):
    kind = pinning_kind(shared=None, dedicated=None)

    def setUp(self) -> None:
        super().setUp()
        self.life = Life(self, pcpu=False)
        specs = {**PINNED, **ONE_AND_THREE, "hw:emulator_threads_policy": "isolate"}
        self.pinned = self.flavor("pinned", specs, vcpus=4, disk_gb=1)

    def test_a_server_from_before_reporting_moves_as_before(self) -> None:
        for name in ("one", "two"):
            self.life.start(name, reporting=None)
        self.server = self.boot(self.pinned, host="one")
        self.life.is_on_root("one")
        self._migrate_server(self.server)
        self._revert_resize(self.server)
        self.life.live_migrate("one", "two")
        self.life.is_on_root("two")
        self.life.reports = {"one": True, "two": True}
        with self.assertLogs(LOGGER, logging.WARNING) as logs:
            self.restart("one")
        (warning,) = logs.records
        assert warning.getMessage().startswith("one reports its NUMA nodes without [compute]")
        self.restart("two")
        self.life.is_on("two")

        self._migrate_server(self.server)
        self.life.is_on("one", others=True)
        self._revert_resize(self.server)
        self.life.is_on("two")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on("one")
        self.life.live_migrate("one", "two")
        self.life.is_on("two")
        self.go_down("two")
        self._evacuate_server(self.server, expected_host="one", expected_state="ACTIVE")
        self.life.is_on("one", others=True)
        self.life.is_back("two")
        self._shelve_server(self.server)
        self._unshelve_server(self.server)
        self._rebuild_server(self.server, IMAGE)
        self.life.end()

    def test_boot_beside_hosts_with_pcpu(self) -> None:
        self.life.start("one")
        self.flags(group="compute", cpu_shared_set="0-1,6-7", cpu_dedicated_set="2-5,8-11")
        self.life.start("dedicated")
        # 4 PCPU of each node of "dedicated" and the CPU of emulator threads: one server fits, and
        # no server holds VCPU there. "one" has 6 CPUs in each node.
        hosts = [self.boot(self.pinned) for _ in range(2)]
        assert sorted(map(self.host_of, hosts)) == ["dedicated", "one"]
        used = self.life.used()
        vcpu = {name: amounts["VCPU"] for name, amounts in used.items() if "VCPU" in amounts}
        pcpu = {name: amounts["PCPU"] for name, amounts in used.items() if "PCPU" in amounts}
        # Nova pins the guest's NUMA nodes of 1 and 3 vCPUs to the host's nodes in either order.
        assert vcpu.keys() == {"one_NUMA0", "one_NUMA1"}
        assert sorted(vcpu.values()) == [1, 3]
        assert sorted(pcpu.values()) == [2, 3]
