"""Unified limits of a project whose servers claim shares."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import fixtures
import pytest
from nova import context, objects
from nova.compute import api
from nova.conductor.api import ComputeTaskAPI
from nova.limit import placement
from nova.scheduler.client.report import SchedulerReportClient
from nova.scheduler.utils import ResourceRequest
from nova.tests.functional.api.client import OpenStackApiException
from oslo_limit.exception import SessionInitError

from cpu_tiers.conf import quota
from cpu_tiers.nova import options
from cpu_tiers.nova.api import shares_quota
from cpu_tiers.nova.api.features import API
from cpu_tiers.nova.options import CONF
from tests.hostile_answers import OF_ANY, Answer
from tests.nova.cloud import MULTIPLIER, SHARES, Cloud
from tests.nova.computes import PLAIN, Computes
from tests.nova.kinds import NODES_OF_SEVEN
from tests.nova.traffic import Traffic
from tests.nova.unified_limits import OF_NOVA, limit

CLASS = f"class:{SHARES}"
USAGES = "GET /usages"
CONNECTION = "oslo_limit.limit._get_keystone_connection"
OTHER_IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"
"""Of Nova's stand-in for Glance, which boots servers of another image."""


class TestUnifiedLimits(Cloud):
    """All services are in this process, so nova-api has the seams of nova-scheduler too.

    In production nova-api has no seam for Placement without an option, see test_features.
    """

    def setUp(self) -> None:
        self.flags(driver=quota.UNIFIED_LIMITS, group="quota")
        super().setUp()
        limit(self, {"servers": 3, "class:VCPU": 4, "class:MEMORY_MB": 4096})
        self.start_host("one", **{SHARES: 800})

    def test_shares_without_a_limit_are_not_in_the_way(self) -> None:
        gold = self.tier("gold", "100", vcpus=2)
        for _ in range(2):
            assert self.allocated(self.boot(gold)["id"]) == {"one": 200}
        with pytest.raises(OpenStackApiException) as caught:
            self.boot(gold)  # 6 VCPU > 4
        assert caught.value.response.status_code == 403
        assert "class:VCPU" in caught.value.response.text


class TestQuotaOfShares(Cloud):
    """nova-scheduler has no seam here, so only nova-api adds shares to a request."""

    weighers = ("nova.scheduler.weights.all_weighers",)
    scheduler_options: ClassVar[Mapping[str, Any]] = {}

    def setUp(self) -> None:
        options.register(quota)
        self.flags(driver=quota.UNIFIED_LIMITS, group="quota")
        super().setUp()
        self.limits = {**OF_NOVA, CLASS: 500}
        self.keystone = limit(self, self.limits)
        self.start_host("one", **{SHARES: 800})
        self.gold = self.tier("gold", "100", vcpus=2)
        self.silver = self.tier("silver", "12.5", vcpus=2)
        self.stated = self.flavor("stated", {PLAIN: "100", f"resources:{SHARES}": "100"})

    def start_nova_api(self, *, counts_shares: bool = True) -> None:
        """Have nova-api start with the option on or off."""
        self.flags(count_vcpu_shares=counts_shares, group="quota")
        API.start()

    def refused(self, *, usage: int, delta: int) -> Any:
        """Return a context in which a request gets the answer 403 with these numbers."""
        numbers = f"{CLASS} is over limit of 500 due to current usage {usage} and delta {delta}"
        return pytest.raises(OpenStackApiException, match=f"(?s)403.*{numbers}")

    def many(self, flavor: str, *, least: int, most: int) -> list[str]:
        """Create several servers by a single request; return their uuids."""
        counts = {"min_count": least, "max_count": most, "return_reservation_id": True}
        server = {**self._build_server(flavor_id=flavor, networks="none"), **counts}
        reservation = self.api.post_server({"server": server})["reservation_id"]
        servers = self.api.get_servers(search_opts={"reservation_id": reservation})
        return [self._wait_for_state_change(each, "ACTIVE")["id"] for each in servers]

    def test_without_the_option_no_limit_counts_a_multiplier(self) -> None:
        assert len(self.many(self.gold, least=3, most=3)) == 3  # 3 x 2 x 100 > 500

    def test_a_life(self) -> None:
        self.start_nova_api()
        with self.refused(usage=0, delta=600):
            self.many(self.gold, least=3, most=3)
        first, second = self.many(self.gold, least=1, most=3)  # 400 of 500
        with self.refused(usage=400, delta=200):
            self.boot(self.gold)
        stated = self.boot(self.stated)  # 500 of 500
        with self.refused(usage=500, delta=25):
            self.boot(self.silver)  # 2 x 12.5
        self._delete_server(stated)
        small = self.boot(self.silver)  # 425 of 500
        with self.refused(usage=425, delta=100):
            self.boot(self.stated)
        with self.refused(usage=425, delta=200):
            self._resize_server(small, self.gold)
        self._shelve_server({"id": second})  # 225 of 500
        self.boot(self.gold)  # 425 of 500
        with self.refused(usage=425, delta=200):
            self.api.post_server_action(second, {"unshelve": None})
        self._delete_server({"id": first})  # 225 of 500
        self._unshelve_server({"id": second})
        assert self.allocated(second) == {"one": 200}

    def test_what_changes_no_flavor_changes_no_count(self) -> None:
        """At the limit, and above a limit that sank: Nova rescues and rebuilds there, too."""
        self.start_nova_api()
        servers = [self.boot(self.gold), self.boot(self.gold), self.boot(self.stated)]
        for most in (500, 100):
            self.limits[CLASS] = most
            for server in servers:
                Path(CONF.instances_path, server["id"]).mkdir(parents=True, exist_ok=True)
                self.api.post_server_action(server["id"], {"rescue": {}})
                self._wait_for_state_change(server, "RESCUE")
                self.api.post_server_action(server["id"], {"unrescue": None})
                self._wait_for_state_change(server, "ACTIVE")
                self._rebuild_server(server, OTHER_IMAGE)
                assert self.allocated(server["id"]) == {"one": 200 - 100 * (server is servers[2])}
            refusal = f"over limit of {most} due to current usage 500 and delta 25"
            with pytest.raises(OpenStackApiException, match=refusal):
                self.boot(self.silver)

    def boot_at_once(self, flavor: str, count: int) -> Counter[str]:
        """Have nova-api check several requests before nova-scheduler claims for one of them.

        :returns: the number of servers in each status. In a test of Nova, the refusal of
            nova-conductor is the answer to the request, too.
        """
        all_are_checked = threading.Barrier(count, timeout=120)
        build = ComputeTaskAPI.schedule_and_build_instances

        def wait_and_build(*args: Any, **kwargs: Any) -> Any:
            all_are_checked.wait()
            return build(*args, **kwargs)

        def request(_: int) -> None:
            server = self._build_server(flavor_id=flavor, networks="none")
            with suppress(OpenStackApiException):
                self.api.post_server({"server": server})

        patch = fixtures.MockPatchObject(
            ComputeTaskAPI, "schedule_and_build_instances", wait_and_build
        )
        with patch, ThreadPoolExecutor(count) as threads:
            list(threads.map(request, range(count)))
        for _ in range(600):
            ended = {name: self.in_status(name) for name in ("ACTIVE", "ERROR")}
            statuses = Counter({name: len(servers) for name, servers in ended.items()})
            if statuses.total() == count:
                break
            time.sleep(0.1)
        return statuses

    def in_status(self, status: str) -> list[Any]:
        """Return the servers in a status."""
        return list(self.api.get_servers(detail=False, search_opts={"status": status}))

    def test_requests_at_the_same_moment(self) -> None:
        """nova-conductor finds what flavors state; it has no part of cpu-tiers."""
        self.start_nova_api()
        stated = self.flavor("two", {PLAIN: "200", f"resources:{SHARES}": "200"}, vcpus=2)
        statuses = self.boot_at_once(stated, 3)  # 600 of 500
        assert statuses.total() == 3
        assert statuses["ACTIVE"] <= 2
        for server in (*self.in_status("ACTIVE"), *self.in_status("ERROR")):
            self._delete_server(server)
        assert self.usage() == 0
        # In this process, nova-conductor has the seams of nova-api.
        self.flags(recheck_quota=False, group="quota")
        assert self.boot_at_once(self.gold, 3) == {"ACTIVE": 3, "ERROR": 0}
        assert self.usage() == 600
        with self.refused(usage=600, delta=25):
            self.boot(self.silver)
        self._delete_server(self.in_status("ACTIVE")[0])
        self.boot(self.silver)  # 425 of 500

    def usage(self) -> int:
        """Return the shares that Placement says the project has in use."""
        url = f"/usages?project_id={self.api.project_id}"
        usages = self.placement.get(url, version="1.9").body["usages"]
        return int(usages.get(SHARES, 0))

    def test_a_keystone_that_does_not_answer(self) -> None:
        """Each request that a limit is for ends as in a stock Nova; all others are carried out."""
        self.start_host("two", **{SHARES: 800})
        stock, ours = map(self.outcomes_without_keystone, (False, True))
        assert ours == stock
        assert stock["boot"] == stock["resize"] == stock["unshelve"] == 500

    def outcomes_without_keystone(self, counts_shares: bool) -> dict[str, int]:
        """Return the status of the refusal of each request, or 0."""
        self.start_nova_api(counts_shares=counts_shares)
        server, shelved = self.boot(self.gold), self.boot(self.gold)
        self._shelve_server(shelved)
        actions: dict[str, Callable[[], object]] = {
            "boot": lambda: self.boot(self.gold),
            "resize": lambda: self._resize_server(server, self.silver),
            "unshelve": lambda: self._unshelve_server(shelved),
            "rebuild": lambda: self._rebuild_server(server, OTHER_IMAGE),
            "delete": lambda: self._delete_server(server),
        }
        with fixtures.MockPatch(CONNECTION, side_effect=SessionInitError("down")):
            outcomes = {name: self.outcome(action) for name, action in actions.items()}
        self._unshelve_server(shelved)
        self._delete_server(shelved)
        return outcomes

    @staticmethod
    def outcome(action: Callable[[], object]) -> int:
        """Return the status of a refusal, or 0."""
        try:
            action()
        except OpenStackApiException as error:
            return int(error.response.status_code)
        return 0

    def test_requests_to_placement_and_keystone(self) -> None:
        """With the option off, those of Nova; with the option on, those of one more limit."""
        self.start_host("two", **{SHARES: 800})
        copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy, return_value="{}"))
        # nova-conductor is in this process, and does not have the seams of nova-api elsewhere.
        self.flags(recheck_quota=False, group="quota")
        traffic = self.useFixture(Traffic())
        stock = self.requests_of_a_life(traffic)
        self.start_nova_api(counts_shares=False)
        assert self.requests_of_a_life(traffic) == stock
        self.start_nova_api()
        on = self.requests_of_a_life(traffic)
        more = {step: counts - stock[step] for step, counts in on.items()}
        # Nova asks for its limits with amounts of 0, cpu-tiers for that of the shares apart.
        of_placement = {"boot": {}, "resize": {}, "unshelve": {USAGES: 1}}
        assert {
            step: {each: n for each, n in counts.items() if not each.startswith("Keystone")}
            for step, counts in more.items()
        } == of_placement
        # Older releases of oslo.limit also ask for the limit of the cloud each time.
        asked = {step: counts["Keystone limits"] for step, counts in more.items()}
        assert asked == {"boot": 1, "resize": 1, "unshelve": 2}
        assert all(stock[step] - counts == {} for step, counts in on.items())

    def requests_of_a_life(self, traffic: Traffic) -> dict[str, Counter[str]]:
        """Return the requests to Placement and to Keystone of each step that a limit is for."""
        requests = dict[str, Counter[str]]()

        @contextmanager
        def step(name: str) -> Iterator[None]:
            before = len(self.keystone.method_calls)
            with traffic.of_step() as counts:
                yield
            calls = (f"Keystone {call[0]}" for call in self.keystone.method_calls[before:])
            requests[name] = counts.requests + Counter(calls)

        with step("boot"):
            server = self.boot(self.gold)
        with step("resize"):
            self._resize_server(server, self.silver)
        self._confirm_resize(server)
        self._shelve_server(server)
        with step("unshelve"):
            self._unshelve_server(server)
        self._delete_server(server)
        return requests

    def test_usages_that_lie(self) -> None:
        """Whatever Placement says of usages, a server is unshelved that stock Nova unshelves."""
        server = self.boot(self.gold)["id"]
        admin = context.get_admin_context()
        admin.project_id = admin.user_id = "p"
        instance = objects.Instance.get_by_uuid(admin, server)
        spec = objects.RequestSpec.get_by_instance_uuid(admin, server)

        def outcome(answer: Answer) -> str:
            send = SchedulerReportClient.get

            def get(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
                given = send(client, url, *args, **kwargs)
                if not url.startswith("/usages"):
                    return given
                content = answer(given.json())
                return SimpleNamespace(status_code=200, json=lambda: json.loads(content))

            with fixtures.MockPatchObject(SchedulerReportClient, "get", get):
                try:
                    api.API._check_quota_unshelve_offloaded(admin, instance, spec)
                except Exception as error:
                    return type(error).__name__
            return "unshelved"

        stock = {name: outcome(answer) for name, answer in OF_ANY.items()}
        self.start_nova_api()
        assert {name: outcome(answer) for name, answer in OF_ANY.items()} == stock
        assert "unshelved" in stock.values()

    def test_a_server_that_exists_is_counted_with_whatever_flavor(self) -> None:
        """A new server of the flavor is refused by nova-scheduler."""
        both = {MULTIPLIER: "100", PLAIN: "100"}
        for specs, shares in (
            ({MULTIPLIER: "100"}, {SHARES: 100}),
            ({MULTIPLIER: "100", "hw:cpu_policy": "dedicated"}, {}),
            ({MULTIPLIER: "100", f"resources:{SHARES}": "7"}, {SHARES: 7}),
            (both, {}),  # which weight? the server claims none
            ({MULTIPLIER: "100", "trait:HW_CPU_X86_VMX": "preferd"}, {SHARES: 100}),
            ({MULTIPLIER: "100", "hw:numa_mem.0": "1"}, {SHARES: 100}),
        ):
            self.start_nova_api()
            sizes = {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
            flavor = objects.Flavor(name="f", extra_specs=specs, **sizes)
            spec = objects.RequestSpec(flavor=flavor, is_bfv=True)
            request = ResourceRequest.from_request_spec(spec)
            amounts = request.merged_resources()
            assert {name: n for name, n in amounts.items() if name == SHARES} == shares


class TestQuotaOnNodes(Computes):
    """A host with two NUMA nodes, of which each has two shared CPUs and five dedicated CPUs."""

    microversion = "latest"
    kind = NODES_OF_SEVEN
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        **NODES_OF_SEVEN.scheduler_options,
        "query_placement_for_numa": True,
    }

    def test_servers_of_both_kinds_count(self) -> None:
        options.register(quota)
        self.flags(driver=quota.UNIFIED_LIMITS, count_vcpu_shares=True, group="quota")
        limit(self, {**OF_NOVA, CLASS: 40})
        API.start()
        self.nodes(True)
        self.start_host("one")
        silver = {MULTIPLIER: "10", "hw:numa_nodes": "2"}
        on_nodes = self.flavor("on nodes", silver, vcpus=2)
        pinned = self.flavor("pinned", {**silver, "hw:cpu_policy": "dedicated"}, vcpus=4)
        one_node = {"hw:numa_nodes": "1"}
        small = self.flavor("small", {**one_node, MULTIPLIER: "10"})
        stated = self.flavor("stated", {**one_node, PLAIN: "10", f"resources:{SHARES}": "10"})
        first = self.boot(on_nodes)
        assert self.shares_of(first) == [10, 10]  # a vCPU on each node
        assert self.shares_of(self.boot(pinned)) == []
        assert sum(self.shares_of(self.boot(small))) == 10  # 30 of 40 in all
        for flavor, delta in ((on_nodes, 20), (self.tier("large", "11"), 11)):
            refusal = f"{CLASS} is over limit of 40 due to current usage 30 and delta {delta}"
            with pytest.raises(OpenStackApiException, match=refusal):
                self.boot(flavor)
        assert sum(self.shares_of(self.boot(stated))) == 10  # 40 of 40
        with pytest.raises(OpenStackApiException, match="usage 40 and delta 10"):
            self.boot(small)
        self._delete_server(first)  # 20 of 40
        assert self.shares_of(self.boot(on_nodes)) == [10, 10]

    def shares_of(self, server: Mapping[str, Any]) -> list[int]:
        """Return the shares of a server on each provider that has any."""
        return [shares for shares in self.allocated(server["id"]).values() if shares]


def test_keystone_answers_nova_and_then_not_cpu_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stays offloaded, as if Keystone had not answered to Nova a moment before."""

    def no_answer(*_: object) -> None:
        raise ConnectionError("no route to keystone")

    monkeypatch.setattr(placement, "_get_enforcer", no_answer)
    instance = objects.Instance(project_id="acme")
    flavor = objects.Flavor(name="gold", vcpus=1, memory_mb=1, root_gb=0, ephemeral_gb=0, swap=0)
    flavor.extra_specs = {MULTIPLIER: "100"}
    asked: list[object] = []
    spec = objects.RequestSpec(flavor=flavor)
    with pytest.raises(ConnectionError, match="no route to keystone"):
        shares_quota._refuse_unshelving(lambda *each: asked.extend(each), None, instance, spec)
    assert asked[1] is instance  # Nova has made its own check
