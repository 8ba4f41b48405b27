"""``cpu-tiers allocation heal`` and ``reshape plan`` on hosts that report their NUMA nodes.

Hosts are those of :mod:`tests.nova.numa.moves`.
"""

from collections.abc import Mapping
from typing import Any
from unittest import mock

from nova import context, objects

from cpu_tiers.tools.placement.client import PlacementClient
from tests.nova.computes import MULTIPLIER, Computes
from tests.nova.networks import BRIDGE, EGRESS, PORT_IDS, Neutron, add_devices, bandwidth
from tests.nova.networks import placement_of as client_of
from tests.nova.numa.hosts import SHARES
from tests.nova.numa.moves import MOVING, NUMA, PINNED, MoveCommands
from tests.nova.provider_tree import ANCHOR

ODD = {**NUMA, MULTIPLIER: "12.5"}
"""With 2 vCPUs 25 shares: 12.5 of each node, and the first takes what is odd."""


class Heals(Computes):
    kind = MOVING

    def setUp(self) -> None:
        super().setUp()
        self.commands = MoveCommands(self)
        self.reporting(True)

    def become_aware(self) -> None:
        """Have the host report its nodes, and move its servers there."""
        self.nodes(True)
        self.restart("one")

    def whole(self, server: str) -> dict[str, dict[str, int]]:
        """Return what a server on NUMA nodes of the host holds, with the anchor."""
        held = self.held(server)
        return {**held, "one": {**held.get("one", {}), ANCHOR: 1}}

    def heal(self, mode: str, *arguments: str, status: int = 0) -> dict[str, Mapping[str, Any]]:
        """Return where what is added goes, by consumer."""
        self.said = self.commands.run(
            "allocation", "heal", mode, "--skip-ports", *arguments, status=status
        )
        return {row["consumer"]: row["goes_to"] for row in self.said.rows}

    def without(self, server: str, resource_class: str) -> None:
        """Have a server hold what it holds but for a resource class."""
        body = self.placement.get(f"/allocations/{server}", version="1.28").body
        for allocation in body["allocations"].values():
            allocation["resources"].pop(resource_class, None)
        left = body["allocations"].items()
        body["allocations"] = {uuid: of for uuid, of in left if of["resources"]}
        assert self.placement.put(f"/allocations/{server}", body, version="1.28").status == 204


class TestHeal(Heals):
    def test_servers_without_allocations_get_allocations_on_the_nodes_of_the_guest(self) -> None:
        self.start_host("one")
        self.boot_on("one", self.flavor("first", {**PINNED, "hw:numa_nodes": "1"}))
        servers = [
            self.boot_on("one", self.flavor("odd", ODD, vcpus=2)),
            self.boot_on("one", self.flavor("pinned", PINNED, vcpus=2)),
            self.boot_on("one", self.flavor("disk", {MULTIPLIER: "3"}, disk_gb=1)),
        ]
        self.become_aware()
        held = {server: self.whole(server) for server in servers}
        assert [len(found) for found in held.values()] == [5, 3, 3]
        for server in servers:
            self.placement.delete(f"/allocations/{server}")
        assert self.heal("--plan") == held
        assert self.held(servers[0]) == {}
        assert self.heal("--apply", "--server", servers[0]) == {servers[0]: held[servers[0]]}
        assert self.heal("--apply", "--host", "one").keys() == set(servers[1:])
        assert {server: self.whole(server) for server in servers} == held
        with mock.patch.object(PlacementClient, "set_consumers") as written:
            assert self.heal("--apply") == {}
        written.assert_not_called()
        assert "hosts that report shares: 1; " in self.said.error

    def test_shares_go_to_the_nodes_in_proportion_to_vcpu(self) -> None:
        self.start_host("one")
        odd = self.boot_on("one", self.flavor("odd", ODD, vcpus=2))
        gold = self.boot_on("one", self.tier("gold", "100"))
        self.become_aware()
        held = {server: self.held(server) for server in (odd, gold)}
        for server in held:
            self.without(server, SHARES)
        found = self.heal("--plan")
        assert sorted(found[odd].items()) == [
            (name, {SHARES: held[odd][name][SHARES]}) for name in ("one_NUMA0", "one_NUMA1")
        ]
        assert {row["consumer"]: row["adds"] for row in self.said.rows} == {
            odd: {SHARES: 25},
            gold: {SHARES: 100},
        }
        assert self.heal("--apply") == found
        assert {server: self.held(server) for server in held} == held

    def test_a_server_without_an_anchor(self) -> None:
        """As one of which the allocations were made by an older cpu-tiers."""
        self.start_host("one")
        servers = [self.boot_on("one", self.flavor(f"odd {n}", ODD, vcpus=2)) for n in range(2)]
        plain = self.boot_on("one", self.flavor("plain", disk_gb=1))
        self.become_aware()
        held = {server: self.held(server) for server in (*servers, plain)}
        for server in held:
            self.without(server, ANCHOR)
        self.without(servers[1], SHARES)
        found = self.heal("--plan")
        assert found.keys() == held.keys()
        assert found[servers[0]] == found[plain] == {"one": {ANCHOR: 1}}
        assert found[servers[1]]["one_NUMA0"] == {SHARES: 13}
        assert self.heal("--apply") == found
        assert {server: self.held(server) for server in held} == held
        assert self.heal("--apply") == {}

    def test_without_shares_on_the_host(self) -> None:
        self.reporting(False)
        self.start_host("one")
        server = self.boot_on("one", self.flavor("odd", ODD, vcpus=2))
        self.become_aware()
        held = self.whole(server)
        self.placement.delete(f"/allocations/{server}")
        assert self.heal("--apply", "--host", "one") == {server: held}
        assert self.whole(server) == held
        assert self.heal("--apply", "--host", "one") == {}

    def test_a_server_without_room_is_named_and_nothing_is_written(self) -> None:
        self.start_host("one")
        pinned = self.boot_on("one", self.flavor("pinned", PINNED, vcpus=2))
        small = self.boot_on("one", self.tier("small", "1"))
        self.become_aware()
        (node,) = (name for name, held in self.held(pinned).items() if "PCPU" in held)
        for server in (pinned, small):
            self.placement.delete(f"/allocations/{server}")
        stranger = self.tree.claim({self.tree.providers("one")[node]["uuid"]: {"PCPU": 1}})
        self.heal("--apply", status=1)
        rows = {row["consumer"]: (row["fits"], row["reason"]) for row in self.said.rows}
        assert rows[small] == (True, "")
        given = f"512 MEMORY_MB in pages of 2048 kB, 2 PCPU on NUMA node {node[-1]}; 2 PCPU"
        assert rows[pinned] == (False, f"{given}: only 1 of 2 are left")
        assert f"({pinned}), flavor pinned: asks one for {given}" in self.said.error
        assert "one: nothing is written" in self.said.error
        assert self.held(small) == {}
        self.placement.delete(f"/allocations/{stranger}")
        self.heal("--apply")
        assert self.held(pinned)[node] == {"PCPU": 2}

    def test_a_server_without_nodes_that_is_larger_than_each(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.flavor("small", vcpus=2))
        self.become_aware()
        self.placement.delete(f"/allocations/{server}")
        found = objects.Instance.get_by_uuid(context.get_admin_context(), server, ["flavor"])
        found.flavor.vcpus = 3
        found.save()
        self.heal("--apply", status=1)
        assert "no NUMA node can hold all of it (one_NUMA0: 3 VCPU: " in self.said.error
        assert self.held(server) == {}


class TestPorts(Heals):
    def test_with_the_allocation_of_the_server(self) -> None:
        neutron = self.useFixture(Neutron(self))
        self.start_host("one")
        add_devices(client_of(self), "one")
        server = self._create_server(
            flavor_id=self.flavor("odd", ODD, vcpus=2), networks=[{"port": PORT_IDS[0]}]
        )["id"]
        self.become_aware()
        held = self.held(server)
        neutron.ask(PORT_IDS[0], bandwidth(10))
        self.placement.delete(f"/allocations/{server}")
        for mode in ("--plan", "--apply"):
            rows = self.commands.run("allocation", "heal", mode).rows
            found = {row["port"]: row["goes_to"] for row in rows}
            assert found.pop(PORT_IDS[0]) == {BRIDGE.format("one"): {EGRESS: 10}}
            assert found[""].keys() == {"one", *held}
        assert self.held(server)[BRIDGE.format("one")] == {EGRESS: 10}


class TestSharesLater(Heals):
    """Shares are switched on when the host reports its nodes already."""

    def test_the_driver_writes_the_planned_allocations(self) -> None:
        self.reporting(False)
        self.start_host("one")
        odd = self.boot_on("one", self.flavor("odd", ODD, vcpus=2))
        gold = self.boot_on("one", self.tier("gold", "100"))
        self.become_aware()
        before = {server: self.held(server) for server in (odd, gold)}
        self.reporting(True)
        planned = self.commands.goes_to()
        assert planned[odd] == {"one_NUMA0": {SHARES: 13}, "one_NUMA1": {SHARES: 12}}
        assert [*planned[gold].values()] == [{SHARES: 100}]
        self.commands.wanted = "false"  # with another nova.conf than the host's: shares alone
        said = self.commands.run("reshape", "plan", "--host", "one")
        assert {row["consumer"]: row["goes_to"] for row in said.rows} == planned
        assert "one_NUMA1: vcpu_share_multiplier 100 gives 200 shares" in said.error  # 2 CPUs
        self.commands.wanted = "true"
        self.restart("one")
        for server, held in before.items():
            gained = {name: amounts.get(SHARES) for name, amounts in self.held(server).items()}
            assert gained == {n: planned[server].get(n, {}).get(SHARES) for n in held}
        assert self.commands.goes_to() == {}

    def test_a_server_without_room_for_shares_is_refused(self) -> None:
        self.reporting(False)
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        self.become_aware()
        (node,) = (name for name, held in self.held(gold).items() if "VCPU" in held)
        self.flags(vcpu_share_multiplier=50, group="libvirt")  # 100 of each node, twice
        self.reporting(True)
        limit = f"asks {node} for 200 {SHARES}: one server may have at most 100 (max_unit)"
        assert self.commands.refused("one") == {gold: limit}
