"""The NUMA nodes that a server of a request gets: the best candidate of a host first.

A host has two NUMA nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects

from cpu_tiers.nova.numa.candidate_cells import with_places
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.numa.candidate_order import put_best_first
from tests.nova.faults import no_bad_query
from tests.nova.scheduler.reporting_hosts import ONE, TWO, ReportingHosts


class TestMatrix(ReportingHosts):
    """Spec: "Optionally configured NUMA resources"."""

    def test_hosts_where_aware_and_agnostic_servers_may_run(self) -> None:
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


class TestBoot(ReportingHosts):
    def test_a_server_without_disk_has_allocations_on_nodes(self) -> None:
        self.start_host("one")
        with no_bad_query():
            server = self.boot(self.flavor("two", TWO, vcpus=4))
        assert self.placed(server) == {"one": {"CUSTOM_NUMA_SERVER": 1}} | {
            f"one_NUMA{cell}{pages}": amounts
            for cell in (0, 1)
            for pages, amounts in (("", {"VCPU": 2}), ("_PAGES_4", {"MEMORY_MB": 256}))
        }

    def test_a_server_with_disk(self) -> None:
        self.start_host("one")
        flavor = self._create_flavor(
            vcpu=2, memory_mb=512, disk=1, ephemeral=0, extra_spec={"hw:mem_page_size": "large"}
        )
        placed = self.placed(self.boot(flavor))
        (node,) = (name for name, held in placed.items() if "VCPU" in held)
        assert placed == {
            "one": {"DISK_GB": 1, "CUSTOM_NUMA_SERVER": 1},
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
        with no_bad_query():
            server = self.boot(self.flavor("two", TWO, vcpus=2), az="az2")
        assert self.nodes_of(server) == {"two_NUMA0", "two_NUMA1"}


class TestMany(ReportingHosts):
    def test_each_server_of_a_request_goes_to_a_node_with_room(self) -> None:
        # 8 CPUs on two nodes take four servers of 2; each node has room for two of them
        self.start_host("one")
        server = self._build_server(flavor_id=self.flavor("half", ONE, vcpus=2), networks="none")
        self.api.post_server({"server": {**server, "min_count": 4}})
        servers = [self._wait_for_state_change(one, "ACTIVE") for one in self.api.get_servers()]
        nodes = sorted(name for one in servers for name in self.nodes_of(one))
        assert nodes == ["one_NUMA0"] * 2 + ["one_NUMA1"] * 2


def order_of(candidates: list[Any], summaries: dict[str, Any]) -> list[str]:
    """Return the nodes of the candidates of a host without PCI devices, the best first."""
    placed = [with_places(candidate, summaries) for candidate in candidates]
    host = SimpleNamespace(allocation_candidates=placed, pci_stats=None)
    put_best_first(host, objects.RequestSpec())
    return [each["mappings"]["_PROC1"][0] for each in host.allocation_candidates]


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
            "traits": [f"CUSTOM_NUMA_CELL_{used}"],
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
        assert order_of(ways, summaries) == order
    finally:
        CONF.clear_override(option, "compute")
