"""What Placement answers to nova-scheduler about NUMA nodes, and what becomes of it.

A host has two nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from collections.abc import Mapping
from typing import Any, ClassVar
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import context, objects
from nova.scheduler import utils
from nova.scheduler.client import report
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import compute
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.candidate_order import by_host
from cpu_tiers.weights import Forest
from tests.nova.cloud import WEIGHER
from tests.nova.computes import SHARES, Computes
from tests.nova.networks import (
    BRIDGE,
    EGRESS,
    PORT_IDS,
    Neutron,
    add_devices,
    bandwidth,
    placement_of,
)

GIB_KB = 2**20
ONE, TWO = {"hw:numa_nodes": "1"}, {"hw:numa_nodes": "2"}
SMALL = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"
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


class TestOthers(Nodes):
    """What else a server asks for."""

    def test_a_port_with_bandwidth(self) -> None:
        neutron = self.useFixture(Neutron(self))
        neutron.ask(PORT_IDS[0], bandwidth(1000))
        self.start_host("one")
        add_devices(placement_of(self), "one")
        with self.no_bad_query():
            server = self._create_server(
                flavor_id=self.flavor("two", TWO, vcpus=2), networks=[{"port": PORT_IDS[0]}]
            )
        held = self.placed(server)
        assert held[BRIDGE.format("one")] == {EGRESS: 1000}
        assert self.nodes_of(server) == {"one_NUMA0", "one_NUMA1"}
        # With a port, two nodes of a guest may be on one of the host; nothing is left elsewhere.
        self.boot(self.flavor("rest", ONE, vcpus=3))
        neutron.ask(PORT_IDS[1], bandwidth(1000))
        four = self._build_server(
            flavor_id=self.flavor("four", TWO, vcpus=2), networks=[{"port": PORT_IDS[1]}]
        )
        refused = self.api.post_server({"server": four})
        self._wait_for_state_change(refused, "ERROR")

    def test_isolated_groups_of_the_flavor_in_an_aggregate(self) -> None:
        self.provider_yaml("$COMPUTE_NODE", 100)
        self.start_host("one")
        aggregate = self.api.post_aggregate(
            {"aggregate": {"name": "az1", "availability_zone": "az1"}}
        )
        self.api.add_host_to_aggregate(aggregate["id"], "one")
        specs = {f"resources1:{SHARES}": "10", "group_policy": "isolate"}
        with self.no_bad_query():
            server = self.boot(self.flavor("own", {**TWO, **specs}, vcpus=2), az="az1")
        assert self.placed(server)["one"] == {SHARES: 10}


class TestJoined(Nodes):
    def candidates(self, specs: Mapping[str, str]) -> tuple[set[str], set[str]]:
        """Return the hosts that have candidates for a server, and those of the summaries."""
        flavor = objects.Flavor(
            name="f",
            vcpus=2,
            memory_mb=512,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs=dict(specs),
        )
        asked = objects.RequestSpec(
            flavor=flavor,
            image=None,
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
        )
        manager = self.scheduler.manager
        admin = context.get_admin_context()
        request = utils.resources_from_request_spec(admin, asked, manager.host_manager)
        found, summaries, _ = manager.placement_client.get_allocation_candidates(admin, request)
        names = {uuid: name for name, uuid in self.compute_rp_uuids.items()}
        roots = {uuid: summary["root_provider_uuid"] for uuid, summary in summaries.items()}
        return (
            {names[roots[uuid]] for one in found for uuid in one["allocations"]},
            {names[root] for root in roots.values()},
        )

    def test_hosts_with_nodes_and_hosts_without(self) -> None:
        for name, value in (("unset", None), ("off", False), ("on", True)):
            self.nodes_reported(value)
            self.start_host(name)
        aware, agnostic = {"unset", "on"}, {"unset", "off"}
        assert self.candidates(TWO) == (aware, aware)
        assert self.candidates({}) == (agnostic, agnostic)
        # VCPU instead of PCPU, which no host has: not on the one whose nodes have VCPU
        assert self.candidates({"hw:cpu_policy": "dedicated"}) == ({"unset"}, {"unset"})
        self.flags(disable_fallback_pcpu_query=True, group="workarounds")
        assert self.candidates({"hw:cpu_policy": "dedicated"}) == (set(), set())
        self.configure(query_placement_for_numa=False)
        assert self.candidates(TWO) == ({"unset", "off", "on"},) * 2  # as Nova asks

    def test_a_host_that_could_only_put_two_nodes_on_one_is_left_out(self) -> None:
        self.start_host("one")
        self.boot(self.flavor("most", ONE, vcpus=4))
        own = {"resources1:CUSTOM_VCPU_SHARES": "1"}
        self.provider_yaml("$COMPUTE_NODE", 100)
        self.start_host("two")
        self.boot(self.flavor("all", ONE, vcpus=4), host="two")
        assert self.candidates({**TWO, **own}) == (set(), set())


class TestWeighed(Nodes):
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **Nodes.scheduler_options,
        "resource_provider_weight_multiplier": 1.0,
        "resource_provider_scoring": "boring",
        "resource_provider_traits": ["HW_NUMA_ROOT", SMALL],
    }

    def test_traits_of_nodes_are_asked_for(self) -> None:
        """Free: 8 VCPU and 4096 MiB in all, of which a server takes 2 and 512."""
        one, two = self.start_host("one"), self.start_host("two")
        forests = []

        def kept(*args: Any, **values: Any) -> Any:
            forests.append(Forest(*args, **values))
            return forests[-1]

        with mock.patch("cpu_tiers.nova.scheduler.scores.Forest", kept):
            body = self._build_server(flavor_id=self.flavor("f", TWO, vcpus=2), networks="none")
            self.api.post_server({"server": {**body, "min_count": 2}})
            for server in self.api.get_servers():
                self._wait_for_state_change(server, "ACTIVE")
        (forest,) = forests
        found = [forest.explain(host) for host in (one, two)]
        assert [host.trait_score for host in found] == [1.0, 1.0]
        # one server each, then 6 VCPU and 3584 MiB are free: 1 - 2/6, 1 - 512/3584
        assert [host.resources["VCPU"] for host in found] == [pytest.approx(2 / 3)] * 2
        assert [host.resources["MEMORY_MB"] for host in found] == [pytest.approx(6 / 7)] * 2


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

    def test_more_nodes_than_any_host_reports(self) -> None:
        """Placement would try every combination in vain, so it is not asked for them."""
        self.start_host("one")
        asked = []
        get = CLIENT.get

        def seen(client: Any, url: str, **values: Any) -> Any:
            asked.append(url)
            return get(client, url, **values)

        with mock.patch.object(CLIENT, "get", seen):
            self.boot(self.flavor("four", {"hw:numa_nodes": "4"}, vcpus=4), state="ERROR")
        (fallback,) = (url for url in asked if url.startswith("/allocation_candidates"))
        assert "_PROC" not in fallback

    def test_pages_that_no_host_has(self) -> None:
        self.start_host("one")
        flavor = self.flavor("huge", {"hw:mem_page_size": "1MB"})
        with self.no_bad_query():
            server = self.boot(flavor, state="ERROR")
        assert self.fault_of(server) == (
            "No valid host was found. flavor huge, extra spec hw:mem_page_size: asks for pages of"
            " 1024 kB, and no host that reports its NUMA nodes has such pages; these"
            " hosts have pages of 4, 2048 kB"
        )
        full = self.boot(self.flavor("full", {"hw:mem_page_size": "2MB"}, vcpus=8), state="ERROR")
        assert "pages" not in self.fault_of(full)  # there are such pages


def test_candidates_are_found_under_the_root_of_their_nodes() -> None:
    """The disk is a pool's, which shares it; its root is no host."""
    roots = {"n0": "cn", "n1": "cn", "cn": "cn", "pool": "storage"}
    cpus = {"VCPU": {"capacity": 4, "used": 0}}
    summaries = {
        uuid: {"root_provider_uuid": root, "resources": cpus if uuid in ("n0", "n1") else {}}
        for uuid, root in roots.items()
    }
    summaries["n1"]["resources"] = {"VCPU": {"capacity": 4, "used": 2}}

    def on(node: str) -> dict[str, Any]:
        held = {"pool": {"resources": {"DISK_GB": 1}}, node: {"resources": {"VCPU": 2}}}
        return {"allocations": held, "mappings": {"": ["pool"], "_PROC1": [node]}}

    plain = {"allocations": {"cn": {"resources": {"VCPU": 2}}}, "mappings": {"": ["cn"]}}
    first, second = on("n0"), on("n1")
    # 2 of 4 CPUs are taken of n1: the second way leaves no node partly taken
    found = by_host([first, plain, second], summaries)
    assert found == {"cn": [second, first]}
    assert found["cn"][0] is second


@pytest.mark.parametrize(
    ("pack", "order"),
    [pytest.param(False, ["n0", "n1"], id="spread"), pytest.param(True, ["n1", "n0"], id="pack")],
)
def test_novas_strategy_counts(pack: bool, order: list[str]) -> None:
    """Both nodes stay partly taken; n0 has 7 free CPUs, n1 has 6."""
    summaries = {
        node: {
            "root_provider_uuid": "cn",
            "resources": {"VCPU": {"capacity": 8, "used": used}},
        }
        for node, used in (("n0", 1), ("n1", 2))
    }
    ways = [
        {"allocations": {node: {"resources": {"VCPU": 2}}}, "mappings": {"_PROC1": [node]}}
        for node in ("n1", "n0")
    ]
    option = "packing_host_numa_cells_allocation_strategy"
    CONF.set_override(option, pack, "compute")
    try:
        found = by_host(ways, summaries)
    finally:
        CONF.clear_override(option, "compute")
    assert [one["mappings"]["_PROC1"][0] for one in found["cn"]] == order
