"""A cloud on the day on which VCPU_SHARES and the traits of the specs are standard.

``test_standard_names.py`` runs this module, in a process that has the later os-resource-classes
and os-traits. The hosts of a cloud reported CUSTOM_VCPU_SHARES on the day before.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES, with_shares_named
from cpu_tiers.nova.scheduler import share_names
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.share_rename import rename_shares
from cpu_tiers.tools.placement.sync import read_host
from tests import draws
from tests.nova import tiers
from tests.nova.command_line import Commands
from tests.nova.computes import SHARES, Computes
from tests.nova.kinds import REPORTS_SHARES, WEIGHER
from tests.nova.networks import placement_of

CUSTOM, STANDARD = "CUSTOM_VCPU_SHARES", "VCPU_SHARES"


def test_the_libraries_are_later() -> None:
    assert (VCPU_SHARES, OTHER_SHARES) == (STANDARD, CUSTOM)


def put_back(client: PlacementClient, host: str) -> None:
    """Give a host the name that it had on the day before."""
    client.create_resource_class(CUSTOM)
    present = read_host(client, host)
    assert present is not None
    consumers = [client.consumer(consumer) for consumer in present.holdings]
    inventories = {p.uuid: p.inventories for p in present.state.providers.values()}
    client.share_names.others |= inventories.keys()
    client.reshape(inventories, consumers)


def name_of(cloud: Computes, host: str) -> set[str]:
    """Return the names of VCPU_SHARES in the inventories and the usages of a host."""
    inventories = cloud.tree.inventories(host).values()
    used = [u for name, u in cloud.tree.used().items() if name.partition("_NUMA")[0] == host]
    return {CUSTOM, STANDARD} & {name for names in (*inventories, *used) for name in names}


def held(cloud: Computes, consumer: str) -> dict[str, dict[str, int]]:
    """Return what a consumer holds, under the name that the tests of tiers expect."""
    amounts: dict[str, dict[str, int]] = with_shares_named(cloud.tree.held(consumer), CUSTOM)
    return amounts


def prepare(cloud: Computes) -> None:
    """Have the hosts one and three be of the day before, and two be new."""

    def check() -> None:
        for host, name in (("one", CUSTOM), ("two", STANDARD), ("three", CUSTOM)):
            assert name_of(cloud, host) == {name}

    for host in ("one", "three"):
        put_back(placement_of(cloud), host)
        cloud.restart(host)
    cloud.addCleanup(check)


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers.TestTiers, "prepare", prepare)
    monkeypatch.setattr(tiers.TestTiers, "held", held)


TestMixed = pytest.mark.usefixtures("mixed")(tiers.TestTiers)
"""The operations, between hosts with either name; two of them a day."""

OPERATIONS = sorted(name for name in dir(TestMixed) if name.startswith("test_"))
TODAY = {*draws.in_turn(OPERATIONS[::2]), *draws.in_turn(OPERATIONS[1::2])}
for name in {*OPERATIONS} - TODAY:
    setattr(TestMixed, name, None)


class TestOneHost(Computes):
    kind = replace(REPORTS_SHARES, copies_disks=False)
    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": True}
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.flags(allow_resize_to_same_host=True)
        self.client = placement_of(self)
        self.uuid = self.start_host("one")
        self.gold = self.tier("gold", "100", vcpus=2)
        self.first = self.boot_on("one", self.gold)
        put_back(self.client, "one")

    def test_a_host_keeps_the_custom_name_until_the_rename(self) -> None:
        self.restart("one")
        self._run_periodics()
        second = self.boot_on("one", self.gold)
        self._run_periodics()
        assert name_of(self, "one") == {CUSTOM}
        assert held(self, self.first) == held(self, second)
        assert held(self, second)["one"][CUSTOM] == 200
        assert "one keeps the name CUSTOM_VCPU_SHARES" in self.stdlog.logger.output
        self._resize_server({"id": second}, self.tier("silver", "50", vcpus=2))
        migration = self.migration_of(second)

        planned = rename_shares(self.client, "one", is_applied=False)
        assert name_of(self, "one") == {CUSTOM}
        assert rename_shares(self.client, "one") == planned
        assert [(c.provider, c.before, c.after) for c in planned] == [
            ("one", "1600 CUSTOM_VCPU_SHARES", "1600 VCPU_SHARES"),  # 16 CPUs x 100
            *self.amounts(**{self.first: 200, second: 100, migration: 200}),
        ]
        assert rename_shares(self.client, "one") == ()
        # nova-compute has run all the time, and knows nothing yet.
        self._run_periodics()
        self._revert_resize({"id": second})
        self.flags(vcpu_share_multiplier=50, group="libvirt")
        self._run_periodics()
        assert name_of(self, "one") == {STANDARD}
        assert self.inventory_of_shares() == {STANDARD: 800}  # 16 x 50
        third = self.boot_on("one", self.gold)
        self.restart("one")
        for server in (self.first, second, third):
            assert self.tree.held(server)["one"][STANDARD] == 200
        assert name_of(self, "one") == {STANDARD}

    def amounts(self, **held: int) -> list[tuple[str, str, str]]:
        return [
            ("one", f"{held[uuid]} {CUSTOM}", f"{held[uuid]} {STANDARD}") for uuid in sorted(held)
        ]

    def inventory_of_shares(self) -> dict[str, int]:
        totals = self.tree.totals("one")["one"]
        return {name: total for name, total in totals.items() if name.endswith("VCPU_SHARES")}

    def test_servers_without_shares_get_shares_under_the_name_of_the_host(self) -> None:
        body = self.placement.get(f"/allocations/{self.first}", version="1.28").body
        del body["allocations"][self.uuid]["resources"][CUSTOM]
        self.placement.put(f"/allocations/{self.first}", body, version="1.28")
        self.restart("one")
        assert self.tree.held(self.first)["one"][CUSTOM] == 200
        assert name_of(self, "one") == {CUSTOM}

    def test_numa_nodes_get_the_name_of_the_host(self) -> None:
        self.nodes(True)
        self.restart("one")
        assert self.tree.held(self.first)["one_NUMA0"][CUSTOM] == 200
        assert name_of(self, "one") == {CUSTOM}
        rename_shares(self.client, "one")
        self.restart("one")
        assert self.tree.held(self.first)["one_NUMA0"][STANDARD] == 200
        assert name_of(self, "one") == {STANDARD}

    def test_reporting_that_was_turned_off_is_refused_as_before(self) -> None:
        self.reporting(False)
        assert "must not vanish" in self.restart_refused("one")
        assert name_of(self, "one") == {CUSTOM}

    def test_a_flavor_with_the_custom_class_finds_a_renamed_host(self) -> None:
        rename_shares(self.client, "one")
        self.restart("one")
        stated = self.flavor("stated", {f"resources:{CUSTOM}": "300"})
        assert self.tree.held(self.boot_on("one", stated))["one"][STANDARD] == 300

    def test_a_custom_class_that_was_deleted(self) -> None:
        rename_shares(self.client, "one")
        self.restart("one")
        assert self.placement.delete(f"/resource_classes/{CUSTOM}", version="1.2").status == 204
        self.boot_on("one", self.gold)
        full = self.boot(self.tier("full", "1000", vcpus=2), state="ERROR")  # 2,000 of 1,600
        assert "without one of these: 2000 VCPU_SHARES" in self.fault_of(full)

    def test_only_shares_of_the_standard_name_are_lacking(self) -> None:
        full = self.boot(self.tier("full", "1000", vcpus=2), state="ERROR")
        assert "without one of these: 2000 VCPU_SHARES" in self.fault_of(full)


class TestHeal(Commands):
    def test_a_server_is_healed_under_the_share_name_of_the_host(self) -> None:
        self.reporting(True)
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100", vcpus=2))  # the scheduler asks none
        assert SHARES not in held(self, server)["one"]
        put_back(placement_of(self), "one")
        self.commands.run("allocation", "heal", "--apply")
        assert self.tree.held(server)["one"][CUSTOM] == 200
        assert name_of(self, "one") == {CUSTOM}


Answer = tuple[Any, Any, Any]
QUERY = "resources=VCPU%3A1%2CCUSTOM_VCPU_SHARES%3A5&required=CUSTOM_X_VCPU_SHARES"


class Client:
    """Nova's report client, whose Placement answers the further query so."""

    def __init__(self, further: Any) -> None:
        self.further, self.urls = further, list[str]()

    def get(self, url: str, version: str, global_request_id: str) -> Any:
        self.urls.append(url)
        if isinstance(self.further, Exception):
            raise self.further
        status, body = self.further
        return SimpleNamespace(status_code=status, text="text", json=lambda: body)


def candidates(first: Answer | None, client: Client, query: str = QUERY) -> Answer | None:
    """Return the joined answer, where Nova's own function returns ``first``."""
    asked = []

    def original(self: Any, context: Any, resources: Any) -> Answer | None:
        asked.append(resources.to_querystring())
        return first

    assert share_names.SEAM.wrap
    request = SimpleNamespace(to_querystring=lambda: query)
    context = SimpleNamespace(global_id="req-1")
    answer: Answer | None = share_names.SEAM.wrap(original)(client, context, request)
    assert asked == [query.replace("CCUSTOM_VCPU_SHARES", "CVCPU_SHARES")]
    return answer


FOUND = {
    "allocation_requests": ["b"],
    "provider_summaries": {"two": {"resources": {CUSTOM: {"capacity": 5, "used": 0}}}},
}
GARBAGE = (200, {"allocation_requests": None, "provider_summaries": None})


def test_the_answers_to_both_queries_are_joined() -> None:
    client = Client((200, FOUND))
    joined = candidates((["a"], {"one": {}}, "1.36"), client)
    shares = {"resources": {STANDARD: {"capacity": 5, "used": 0}}}
    assert joined == (["a", "b"], {"one": {}, "two": shares}, "1.36")
    assert client.urls == [f"/allocation_candidates?{QUERY}"]


@pytest.mark.parametrize("first", [None, (None, None, None)])
def test_no_further_query_after_a_failed_query(first: Answer | None) -> None:
    client = Client((200, FOUND))
    assert candidates(first, client) == first
    assert client.urls == []


@pytest.mark.parametrize(
    "further", [(503, None), (200, None), (500, None), ConnectFailure("away"), GARBAGE]
)
def test_a_failed_further_query(further: Any, caplog: pytest.LogCaptureFixture) -> None:
    some: Answer = (["a"], {"one": {}}, "1.36")
    assert candidates(some, Client(further)) == some
    assert candidates(([], {}, "1.36"), Client(further)) == (None, None, None)
    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("Placement does not tell the hosts with the other name")


def test_a_name_that_placement_does_not_know_any_more(caplog: pytest.LogCaptureFixture) -> None:
    assert candidates(([], {}, "1.36"), Client((400, None))) == ([], {}, "1.36")
    assert caplog.messages == []


def test_a_request_without_shares_is_left_alone() -> None:
    client = Client((200, FOUND))
    only = "resources=VCPU%3A1&required=CUSTOM_X_VCPU_SHARES"
    assert candidates((["a"], {}, "1.36"), client, only) == (["a"], {}, "1.36")
    assert client.urls == []


class TestTraits(Computes):
    @staticmethod
    def of(*names: str) -> set[str]:
        return {*names, *(f"CUSTOM_{name}" for name in names)}

    def test_a_host_has_each_trait_under_both_names(self) -> None:
        self.start_host("one")
        self.nodes(True)
        self.restart("one")
        pages = self.tree.traits("one", "one_NUMA0_PAGES_4")
        assert self.of("MEMORY_PAGE_SIZE_SMALL") <= pages
        assert self.of("HW_NON_NUMA").isdisjoint(self.tree.traits("one", "one"))

    def test_a_host_that_declines_numa_nodes(self) -> None:
        self.start_host("one")
        self.nodes(False)
        self.restart("one")
        assert self.of("HW_NON_NUMA") <= self.tree.traits("one", "one")
        self.nodes(None)
        self.restart("one")
        assert self.of("HW_NON_NUMA").isdisjoint(self.tree.traits("one", "one"))
