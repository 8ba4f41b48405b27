"""Answers to several queries for a server, joined, and what an unusable or failed answer does.

A host has two NUMA nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import context, objects
from nova.scheduler import utils
from nova.scheduler.client import report

from cpu_tiers.in_time import TimeBudget
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.nova.notes import QueryNotes
from cpu_tiers.nova.numa.candidate_cells import NodeMappings
from cpu_tiers.nova.scheduler.numa import joined_answers
from cpu_tiers.nova.scheduler.numa.joined_answers import SEAM
from cpu_tiers.nova.scheduler.numa.numa_query import NumaRequest
from cpu_tiers.translators import ServerRequest
from tests.nova.computes import SHARES
from tests.nova.faults import no_bad_query
from tests.nova.networks import (
    BRIDGE,
    EGRESS,
    PORT_IDS,
    Neutron,
    add_devices,
    bandwidth,
    placement_of,
)
from tests.nova.scheduler.reporting_hosts import ONE, TWO, ReportingHosts

CLIENT = report.SchedulerReportClient


class TestJoined(ReportingHosts):
    def candidates(
        self, specs: Mapping[str, str], *, disk_gb: int = 0
    ) -> tuple[set[str], set[str]]:
        """Return the hosts that have candidates for a server, and those of the summaries."""
        flavor = objects.Flavor(
            name="f",
            vcpus=2,
            memory_mb=512,
            root_gb=disk_gb,
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
            {names.get(roots[uuid], "pool") for one in found for uuid in one["allocations"]},
            {names.get(root, "pool") for root in roots.values()},
        )

    def test_hosts_with_nodes_and_hosts_without(self) -> None:
        for name, value in (("unset", None), ("off", False), ("on", True)):
            self.nodes_reported(value)
            self.start_host(name)
        aware, agnostic = {"unset", "on"}, {"unset", "off"}
        assert self.candidates(TWO) == (aware, aware)
        assert self.candidates({}) == (agnostic, agnostic)
        # VCPU instead of PCPU, which no host has
        assert self.candidates({"hw:cpu_policy": "dedicated"}) == (aware, aware)
        self.flags(disable_fallback_pcpu_query=True, group="workarounds")
        assert self.candidates({"hw:cpu_policy": "dedicated"}) == (set(), set())
        self.restart_scheduler(query_placement_for_numa=False)
        assert self.candidates(TWO) == ({"unset", "off", "on"},) * 2  # as Nova asks

    def test_the_disk_of_a_host_or_of_a_pool(self) -> None:
        """All hosts have a disk, and later two of them share a larger pool with other hosts."""
        roots = {}
        for name, value in (("on", True), ("off", False), ("alone", True)):
            self.nodes_reported(value)
            roots[name] = self.start_host(name)
        most = self._get_provider_inventory(roots["on"])["DISK_GB"]["max_unit"]
        pool = self._post_resource_provider("pool")["uuid"]
        disk = {"DISK_GB": {"total": most + 1}}
        self._update_inventory(pool, {"resource_provider_generation": 0, "inventories": disk})
        for specs, aware in (({}, {"off"}), (ONE, {"on", "alone"})):
            assert self.candidates(specs, disk_gb=most)[0] == aware
            assert self.candidates(specs, disk_gb=most + 1)[0] == set()
        self._set_provider_traits(pool, ["MISC_SHARES_VIA_AGGREGATE"])
        for uuid in (pool, roots["on"], roots["off"]):
            self._set_aggregate(uuid, pool)  # any uuid is the name of an aggregate
        for specs, host in (({}, "off"), (ONE, "on")):
            assert self.candidates(specs, disk_gb=most + 1)[0] == {host, "pool"}

    def test_a_host_with_room_for_two_guest_nodes_on_a_single_host_node_is_left_out(self) -> None:
        self.start_host("one")
        self.boot(self.flavor("most", ONE, vcpus=4))
        own = {"resources1:CUSTOM_VCPU_SHARES": "1"}
        self.provider_yaml("$COMPUTE_NODE", 100)
        self.start_host("two")
        self.boot(self.flavor("all", ONE, vcpus=4), host="two")
        assert self.candidates({**TWO, **own}) == (set(), set())

    def test_a_tree_of_a_release_before_the_anchor_takes_no_server(self) -> None:
        """Its root does not tell its nodes: only the nodes in the answer do."""
        self.start_host("one")
        root = self._get_provider_uuid_by_name("one")
        of_tree = ("CUSTOM_NUMA_NODES_", "CUSTOM_NUMA_SERVER")
        traits = [t for t in self._get_provider_traits(root) if not t.startswith(of_tree)]
        self._set_provider_traits(root, traits)
        assert self.candidates(TWO) == (set(), set())
        assert self.candidates({}) == (set(), set())
        self.restart("one")
        assert self.candidates(TWO) == ({"one"}, {"one"})


class TestOthers(ReportingHosts):
    """What else a server asks for."""

    def test_a_port_with_bandwidth(self) -> None:
        neutron = self.useFixture(Neutron(self))
        neutron.ask(PORT_IDS[0], bandwidth(1000))
        self.start_host("one")
        add_devices(placement_of(self), "one")
        with no_bad_query():
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
        with no_bad_query():
            server = self.boot(self.flavor("own", {**TWO, **specs}, vcpus=2), az="az1")
        assert self.placed(server)["one"] == {SHARES: 10, "CUSTOM_NUMA_SERVER": 1}


class TestFailure(ReportingHosts):
    def boot_with_failures(
        self,
        flavor: str,
        failing: Collection[int],
        state: str,
        *,
        path: str = "/allocation_candidates",
    ) -> int:
        """Boot a server while some requests for a path fail; return the number of queries."""
        asked: Counter[str] = Counter()
        get = CLIENT.get

        def fail(client: Any, url: str, **values: Any) -> Any:
            start, _, _ = url.partition("?")
            asked[start] += 1
            if start == path and asked[start] in failing:
                raise ConnectFailure("connection refused")
            return get(client, url, **values)

        with mock.patch.object(CLIENT, "get", fail):
            self.server = self.boot(flavor, state=state)
        assert not failing or asked[path] >= max(failing)
        return asked["/allocation_candidates"]

    def test_placement_away_for_either_query(self) -> None:
        """Without the first answer there is no host; without the second there is this one."""
        self.start_host("one")
        two = self.flavor("two", TWO, vcpus=2)
        assert self.boot_with_failures(two, {1}, "ERROR") == 1
        assert self.boot_with_failures(two, {2}, "ACTIVE") == 3  # once more
        assert self.boot_with_failures(two, {2, 3}, "ACTIVE") == 3

    def test_a_host_without_reported_cells_is_left_out(self) -> None:
        """Of a nova-compute with an older cpu-tiers; a start reports the host again."""
        self.start_host("one")
        node = self._get_provider_uuid_by_name("one_NUMA1")
        self._set_provider_traits(node, ["HW_NUMA_ROOT"])
        two = self.flavor("two", TWO, vcpus=2)
        with self.assertLogs("cpu_tiers", "WARNING") as logged:
            self.boot(two, state="ERROR")
        assert any("No trait of the NUMA nodes of" in line for line in logged.output)
        self.restart("one")
        self.boot(two)

    def test_placement_does_not_tell_the_pages(self) -> None:
        self.start_host("one")
        flavor = self.flavor("huge", {"hw:mem_page_size": "1MB"})
        self.boot_with_failures(flavor, {1}, "ERROR", path="/traits")
        assert self.fault_of(self.server) == "No valid host was found. "

    def test_more_nodes_than_any_host_reports(self) -> None:
        """The root provider tells the number of nodes, so Placement tries no combination."""
        self.start_host("one")
        asked = []
        get = CLIENT.get

        def seen(client: Any, url: str, **values: Any) -> Any:
            asked.append(url)
            return get(client, url, **values)

        with mock.patch.object(CLIENT, "get", seen):
            self.boot(self.flavor("four", {"hw:numa_nodes": "4"}, vcpus=4), state="ERROR")
        of_nodes, fallback = (url for url in asked if url.startswith("/allocation_candidates"))
        assert "CUSTOM_NUMA_NODES_4" in of_nodes
        assert "_PROC" not in fallback

    def test_pages_that_no_host_has(self) -> None:
        self.start_host("one")
        flavor = self.flavor("huge", {"hw:mem_page_size": "1MB"})
        with no_bad_query():
            server = self.boot(flavor, state="ERROR")
        assert self.fault_of(server) == (
            "No valid host was found. flavor huge, extra spec hw:mem_page_size: asks for pages of"
            " 1024 kB, and no host that reports its NUMA nodes has such pages; these"
            " hosts have pages of 4, 2048 kB"
        )
        full = self.boot(self.flavor("full", {"hw:mem_page_size": "2MB"}, vcpus=8), state="ERROR")
        assert "pages" not in self.fault_of(full)  # there are such pages


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ValueError("half an answer"), id="half JSON"),
        pytest.param(KeyError("allocation_requests"), id="JSON without the candidates"),
        pytest.param(([{}], {}, "1.36"), id="a candidate without mappings"),
        pytest.param(([{"mappings": {"a": ["p"], "b": ["p"]}}], {}, "1.36"), id="no allocations"),
        pytest.param((["text"], {}, "1.36"), id="text for a candidate"),
        pytest.param(ConnectFailure("no route"), id="no connection"),
    ],
)
def test_an_unusable_answer_is_a_failed_query(answer: Any) -> None:
    """For Nova, ``None`` is an answer that did not come: NoValidHost."""
    original = mock.Mock(side_effect=[answer])
    assert SEAM.wrap is not None
    request = SimpleNamespace(
        cpu_tiers=QueryNotes(numa=NumaRequest(apart=("a", "b"))), _rg_by_id={}
    )
    assert SEAM.wrap(original)(None, None, request) is None


def test_a_placement_that_hangs_costs_the_interfaces_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(joined_answers, "_LOOK", TimeBudget("Interfaces", seconds=0.1))
    monkeypatch.setattr(joined_answers, "_usable", lambda found, summaries, _: (found, summaries))
    mappings = NodeMappings({"": ["root"], "port": ["unknown device"]}, (), {})
    answer: tuple[Any, ...] = ([{"mappings": mappings}], {}, "1.36")
    request = SimpleNamespace(
        cpu_tiers=QueryNotes(numa=NumaRequest(devices=frozenset({"port"}))),
        _rg_by_id={"port": SimpleNamespace(required_traits=set())},
    )
    with hanging_client() as client:
        assert SEAM.wrap is not None
        assert SEAM.wrap(lambda *_: answer)(client, Context(), request) == answer
    assert caplog.messages == [DROPPED + "Interfaces" + LATE]


def test_a_placement_that_hangs_costs_the_reason_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(joined_answers, "REASONS", TimeBudget("Reason", seconds=0.1))
    huge = Flavor(name="huge", vcpus=1, memory_mb=1, extra_specs={"hw:mem_page_size": "1MB"})
    request = SimpleNamespace(
        cpu_tiers=QueryNotes(numa=NumaRequest(server=ServerRequest(huge, None))), _rg_by_id={}
    )
    with hanging_client() as client:
        assert SEAM.wrap is not None
        wrapped = SEAM.wrap(lambda *_: ([], {}, "1.36"))
        assert wrapped(client, Context(), request) == ([], {}, "1.36")
    assert caplog.messages == [DROPPED + "Reason" + LATE]


class Context:
    global_id = "req-1"


DROPPED = "Dropped, so that no answer waits: "
LATE = ": not done in 0.1 seconds (1 since the last warning)"


@contextmanager
def hanging_client() -> Iterator[Any]:
    """Nova's report client, whose requests have no answer in the context."""
    ends = threading.Event()
    body: dict[str, Any] = {"resource_providers": [], "traits": []}

    def get(*_: object, **__: object) -> Any:
        ends.wait(60)
        return SimpleNamespace(status_code=200, json=lambda: body)

    yield SimpleNamespace(get=get)
    ends.set()
