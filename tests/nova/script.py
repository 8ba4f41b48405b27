"""The life of a server, from the start of its hosts to its end, in steps that are counted."""

from collections.abc import Callable, Iterator
from typing import Any

import fixtures
from nova.objects import ec2
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.nova import seams
from tests.nova.computes import MULTIPLIER, Computes
from tests.nova.kinds import OURS, WEIGHER, Kind
from tests.nova.numa.hosts import hardware
from tests.nova.patience import let_work
from tests.nova.traffic import Counts, Traffic
from tests.nova.wrapping import all_seams, wrapped

IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"
NOVAS_WEIGHERS = "nova.scheduler.weights.all_weighers"
LOOKS = 200
"""How often a test looks for the end of a task, at most 20 times a second."""
SPECS = {MULTIPLIER: "2", "hw:numa_nodes": "1"}
"""Nova ignores the multiplier. The guest has one NUMA node in every configuration."""


def kind(
    driver: str = OURS,
    *,
    weighs: bool = True,
    scheduler: dict[str, Any] | None = None,
    options: dict[str, dict[str, Any]] | None = None,
) -> Kind:
    """Return hosts of 8 CPUs in two NUMA nodes, with every option off that is not given."""
    off: dict[str, dict[str, Any]] = {"libvirt": {"report_vcpu_shares": False}}
    return Kind(
        driver=driver,
        weighers=(NOVAS_WEIGHERS, *((WEIGHER,) if weighs else ())),
        scheduler_options={"query_placement_for_vcpu_shares": False, **(scheduler or {})},
        filters=("NUMATopologyFilter",),
        options={**(off if driver == OURS else {}), **(options or {})},
        hardware=hardware,
    )


STOCK = kind("libvirt.LibvirtDriver", weighs=False)
OFF = kind()
SHARES = kind(
    scheduler={
        "query_placement_for_vcpu_shares": True,
        "resource_provider_weight_multiplier": 1.0,
    },
    options={"libvirt": {"report_vcpu_shares": True}},
)
NODES = kind(
    scheduler={"query_placement_for_numa": True},
    options={
        "libvirt": {"report_vcpu_shares": False},
        "compute": {"enable_numa_reporting_to_placement": True},
    },
)
ALL = kind(
    scheduler={
        "query_placement_for_vcpu_shares": True,
        "query_placement_for_numa": True,
        "require_host_traits": True,
        "resource_provider_weight_multiplier": 1.0,
    },
    options={
        "libvirt": {"report_vcpu_shares": True},
        "compute": {"enable_numa_reporting_to_placement": True},
    },
)
"""Every option is on that makes a service read Nova's database."""


class Script(LibvirtMigrationMixin, Computes):
    """Two hosts and a server with a disk; :meth:`steps` are the operations of its life.

    Nothing runs by a timer: periodic tasks and heartbeats are off.
    """

    microversion = "latest"
    disk_gb = 1
    counts: dict[str, Counts]

    def setUp(self) -> None:
        self.flags(periodic_enable=False, report_interval=0, service_down_time=3600)
        super().setUp()
        # The first boot of a process from an image writes the image to Nova's database.
        self.useFixture(fixtures.MockPatchObject(ec2, "_CACHE", None))
        self.addCleanup(seams.remove, all_seams())
        if self.kind is STOCK:
            assert wrapped() == []
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.stub_out(copy_disks, lambda *_, **__: "{}")  # there are none
        self.small, self.large, self.middle, self.huge = (
            self.flavor(f"{vcpus} vCPUs", SPECS, vcpus=vcpus, disk_gb=self.disk_gb)
            for vcpus in (1, 3, 2, 17)
        )
        self.traffic = self.useFixture(Traffic())

    @property
    def uuid(self) -> Any:
        return self.server["id"]

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Live the life; put the counts of each step into ``counts``."""
        for name, step in self.steps():
            with self.traffic.of_step() as counts:
                step()
            self.counts[name] = counts

    def steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the steps by name, in their order."""
        yield "service start", lambda: self.start_host("one")
        yield "boot", self.boots
        yield "boot without a host", self.finds_no_host
        self._delete_server(self.refused)
        self.start_host("two")
        yield "rebuild", lambda: self.acts({"rebuild": {"imageRef": IMAGE}}, "ACTIVE")
        yield "shelve", lambda: self.acts({"shelve": {}}, "SHELVED_OFFLOADED")
        yield "unshelve", lambda: self.acts({"unshelve": None}, "ACTIVE")
        yield "resize", lambda: self.resize(self.large)
        yield "confirm", lambda: self.acts({"confirmResize": None}, "ACTIVE")
        self.resize(self.small)
        yield "revert", lambda: self.acts({"revertResize": None}, "ACTIVE")
        yield "cold migration", lambda: self.acts({"migrate": None}, "VERIFY_RESIZE")
        self.acts({"confirmResize": None}, "ACTIVE")
        # Nova's fake libvirt loses a guest that has migrated live.
        yield "live migration", self.migrates_live
        down = self.host_of(self.server)
        self.go_down(down)
        yield "evacuation", lambda: self.acts({"evacuate": {}}, "SHUTOFF")
        yield "service restart", lambda: self.restart(down)
        self.come_back(down)
        yield "delete", lambda: self._delete_server(self.server)

    def boots(self) -> None:
        self.server = self.boot(self.small)

    def finds_no_host(self) -> None:
        """Boot a server of 17 vCPUs; the fake libvirt has 16 online CPUs."""
        self.refused = self.boot(self.huge, state="ERROR")

    def resize(self, flavor: str) -> None:
        self.acts({"resize": {"flavorRef": flavor}}, "VERIFY_RESIZE")

    def acts(self, action: dict[str, Any], *states: str) -> str:
        """Have an action done; return the state of the server, one of ``states``, in the end."""
        self.api.post_server_action(self.uuid, action)
        status = self.rests(*states)
        assert status in states, status
        return status

    def rests(self, *states: str) -> str:
        """Wait until the server is in one of ``states`` and has no task; return its state.

        :returns: another state, if the server does not get into one of ``states``.
        :raises AssertionError: the server keeps its task.
        """
        for _ in range(LOOKS):
            server = self.api.get_server(self.uuid)
            task, status = server["OS-EXT-STS:task_state"], str(server["status"])
            if task is None and status in states:
                self.traffic.settle()
                return status
            let_work()
        assert task is None, f"the server stays in {task}"
        return status

    def migrates_live(self) -> None:
        source = self.host_of(self.server)
        self.src, self.dest = self.computes[source], self.computes[self.other(source)]
        self.acts({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "ACTIVE")
        assert self.host_of(self.server) == self.other(source)

    def other(self, host: str) -> str:
        """Return the host beside ``host``."""
        return "two" if host == "one" else "one"
