"""What Placement answers to nova-scheduler about NUMA nodes, and what becomes of it.

A host has two nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from collections.abc import Mapping
from typing import Any, ClassVar
from unittest import mock

from keystoneauth1.exceptions import ConnectFailure
from nova.scheduler.client import report
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import compute
from cpu_tiers.nova import options
from tests.nova.cloud import WEIGHER
from tests.nova.computes import Computes

GIB_KB = 2**20
ONE, TWO = {"hw:numa_nodes": "1"}, {"hw:numa_nodes": "2"}
CLIENT = report.SchedulerReportClient


class Nodes(Computes):
    """Hosts that report their nodes, unless a test says otherwise."""

    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        "query_placement_for_vcpu_shares": False,
        "query_placement_for_numa": True,
    }
    ADDITIONAL_FILTERS = ("NUMATopologyFilter",)

    def setUp(self) -> None:
        super().setUp()
        options.register(compute)
        self.reporting(False)
        self.flags(reserved_host_memory_mb=0, initial_cpu_allocation_ratio=1.0)
        self.nodes_reported(True)

    def nodes_reported(self, value: bool | None) -> None:
        """Set the option of the computes that start or claim from now on."""
        self.flags(enable_numa_reporting_to_placement=value, group="compute")

    def start_host(self, name: str) -> str:
        pages = [(4, GIB_KB // 4), (2048, GIB_KB // 2048)]
        info = fakelibvirt.HostInfo(
            cpu_nodes=2,
            cpu_sockets=1,
            cpu_cores=4,
            cpu_threads=1,
            kB_mem=4 * GIB_KB,
            mempages=[fakelibvirt.create_mempages(pages) for _ in range(2)],
        )
        self.start_compute(name, host_info=info)
        uuid: str = self.compute_rp_uuids[name]
        return uuid

    def placed(self, server: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return what a server holds, by the names of the providers."""
        found = self.placement.get("/resource_providers").body["resource_providers"]
        names = {one["uuid"]: one["name"] for one in found}
        held = self.placement.get(f"/allocations/{server['id']}").body["allocations"]
        return {names[uuid]: body["resources"] for uuid, body in held.items()}

    def nodes_of(self, server: Mapping[str, Any]) -> set[str]:
        """Return the nodes whose CPUs a server holds."""
        return {name for name, held in self.placed(server).items() if "VCPU" in held}


class TestMatrix(Nodes):
    """Spec: "Optionally configured NUMA resources"."""

    def test_who_may_be_where(self) -> None:
        aware, agnostic = self.flavor("aware", TWO, vcpus=2), self.flavor("agnostic")
        for host, value, of_aware, of_agnostic in (
            ("unset", None, "ACTIVE", "ACTIVE"),
            ("off", False, "ERROR", "ACTIVE"),
            ("on", True, "ACTIVE", "ERROR"),
        ):
            self.nodes_reported(value)
            self.start_host(host)
            self.boot(aware, host=host, state=of_aware)
            self.boot(agnostic, host=host, state=of_agnostic)


class TestBoot(Nodes):
    def test_a_server_without_disk_holds_its_nodes(self) -> None:
        self.start_host("one")
        with self.no_bad_query():
            server = self.boot(self.flavor("two", TWO, vcpus=4))
        assert self.placed(server) == {
            f"one_NUMA{cell}{pages}": amounts
            for cell in (0, 1)
            for pages, amounts in (("", {"VCPU": 2}), ("_PAGES_4", {"MEMORY_MB": 256}))
        }

    def test_one_with_disk(self) -> None:
        self.start_host("one")
        flavor = self._create_flavor(
            vcpu=2, memory_mb=512, disk=1, ephemeral=0, extra_spec={"hw:mem_page_size": "large"}
        )
        placed = self.placed(self.boot(flavor))
        (node,) = (name for name, held in placed.items() if "VCPU" in held)
        assert placed == {
            "one": {"DISK_GB": 1},
            node: {"VCPU": 2},
            f"{node}_PAGES_2048": {"MEMORY_MB": 512},
        }

    def test_nodes_that_are_taken_in_part_are_filled_first(self) -> None:
        # 2 of 4 CPUs: the second server fills the node of the first one, the third must go on
        self.start_host("one")
        flavor = self.flavor("half", ONE, vcpus=2)
        first, second, third = (self.nodes_of(self.boot(flavor)) for _ in range(3))
        assert first == second
        assert first | third == {"one_NUMA0", "one_NUMA1"}

    def test_an_aggregate_is_the_hosts(self) -> None:
        self.start_host("one")
        self.start_host("two")
        aggregate = self.api.post_aggregate(
            {"aggregate": {"name": "az2", "availability_zone": "az2"}}
        )
        self.api.add_host_to_aggregate(aggregate["id"], "two")
        with self.no_bad_query():
            server = self.boot(self.flavor("two", TWO, vcpus=2), az="az2")
        assert self.nodes_of(server) == {"two_NUMA0", "two_NUMA1"}


class TestMany(Nodes):
    def test_each_server_of_a_request_goes_where_there_is_room(self) -> None:
        # 8 CPUs on two nodes take four servers of 2; each node has room for two of them
        self.start_host("one")
        server = self._build_server(flavor_id=self.flavor("half", ONE, vcpus=2), networks="none")
        self.api.post_server({"server": {**server, "min_count": 4}})
        servers = [self._wait_for_state_change(one, "ACTIVE") for one in self.api.get_servers()]
        nodes = sorted(name for one in servers for name in self.nodes_of(one))
        assert nodes == ["one_NUMA0"] * 2 + ["one_NUMA1"] * 2


class TestFailure(Nodes):
    def test_placement_away_for_one_of_the_queries(self) -> None:
        self.start_host("one")
        asked = []
        get = CLIENT.get

        def once(client: Any, url: str, **values: Any) -> Any:
            if url.startswith("/allocation_candidates"):
                asked.append(url)
                if len(asked) > 1:
                    raise ConnectFailure("connection refused")
            return get(client, url, **values)

        with mock.patch.object(CLIENT, "get", once):
            self.boot(self.flavor("two", TWO, vcpus=2), state="ERROR")
        assert len(asked) == 2

    def test_pages_that_no_host_has(self) -> None:
        self.start_host("one")
        flavor = self.flavor("huge", {"hw:mem_page_size": "1MB"})
        with self.no_bad_query():
            server = self.boot(flavor, state="ERROR")
        assert self.fault_of(server) == (
            "No valid host was found. flavor huge: memory is asked for in pages of 1024 kB. Of "
            "the hosts that report their NUMA nodes none has any, but pages of 4, 2048 kB; of "
            "those that report none it is not known, but none has room for the server"
        )
        full = self.boot(self.flavor("full", {"hw:mem_page_size": "2MB"}, vcpus=8), state="ERROR")
        assert "pages" not in self.fault_of(full)  # there are such pages
