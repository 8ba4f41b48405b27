"""Allocations that are not where Nova has the server: what ``allocation heal`` does with them.

The commands that heal names are carried out, and heal then finds nothing.
"""

from collections.abc import Mapping
from typing import Any

from nova import context, objects

from tests.nova.command_line import Heals
from tests.nova.computes import SHARES
from tests.nova.reshapes import live_migrate_from_one, resize_from_one

ORPHAN = "5f5a0a4e-0000-4000-8000-00000000000a"
BARE = {"VCPU": 2, "MEMORY_MB": 512}


class TestPlaces(Heals):
    """A server of 2 vCPUs on one, which claims 200 shares and has none yet."""

    def setUp(self) -> None:
        super().setUp()
        self.one, self.two = self.start_host("one"), self.start_host("two")

    def boot_gold(self) -> str:
        return self.boot_on("one", self.tier("gold", "100", vcpus=2))

    def put(self, consumer: str, allocations: Mapping[str, Mapping[str, int]]) -> None:
        """Give a consumer allocations by the uuid of the provider, as the openstack client."""
        body = self.placement.get(f"/allocations/{consumer}", version="1.28").body
        new = {
            "allocations": {host: {"resources": held} for host, held in allocations.items()},
            "project_id": body.get("project_id", "p"),
            "user_id": body.get("user_id", "u"),
            "consumer_generation": body.get("consumer_generation"),
        }
        assert self.placement.put(f"/allocations/{consumer}", new, version="1.28").status == 204

    def said(self, *arguments: str, status: int) -> str:
        """Return what heal says, in one line."""
        error = self.commands.run("allocation", "heal", *arguments, status=status).error
        return " ".join(error.split())

    def test_a_doubled_server_is_healed_on_its_host_alone(self) -> None:
        server = self.boot_gold()
        self.put(server, {self.one: BARE, self.two: BARE})
        said = self.said("--apply", status=1)
        assert self.held(server) == {"one": {**BARE, SHARES: 200}, "two": BARE}
        assert f"({server}) has 512 MEMORY_MB, 2 VCPU of two: left on a host that the" in said
        assert f"allocation unset --os-placement-api-version 1.28 --provider {self.two}" in said
        self.put(server, {self.one: {**BARE, SHARES: 200}})  # what the command does
        assert self.heal("--apply") == {}

    def test_a_misplaced_server_gets_nothing_on_the_wrong_host(self) -> None:
        server = self.boot_gold()
        self.put(server, {self.two: BARE})
        said = self.said("--apply", status=1)
        assert self.held(server) == {"two": BARE}
        assert said.count("on another host than the server, which Nova has on one.") == 1
        assert "No server lacks" not in said
        for where in (("--host", "one"), ("--server", server)):  # not only on the host that has it
            assert "which Nova has on one" in self.said("--plan", *where, status=1)
        assert f"allocation delete {server}, then cpu-tiers allocation heal --apply --ser" in said
        self.placement.delete(f"/allocations/{server}")
        self.heal("--apply", "--server", server)
        assert self.held(server) == {"one": {**BARE, SHARES: 200}}
        assert self.heal("--apply") == {}

    def test_the_orphan_that_fills_a_host_is_named(self) -> None:
        server = self.boot_gold()
        self.put(ORPHAN, {self.one: {"VCPU": 14, SHARES: 600}})  # 40 of 640 are left
        said = self.said("--apply", status=1)
        assert "asks one for 200 CUSTOM_VCPU_SHARES: only 40 of 640 are left" in said
        orphan = f"consumer {ORPHAN} has 600 CUSTOM_VCPU_SHARES, 14 VCPU of one: of no server"
        assert orphan in said
        assert f"If openstack server show {ORPHAN} finds none: openstack resource" in said
        self.placement.delete(f"/allocations/{ORPHAN}")
        assert self.heal("--apply") == {server: {SHARES: 200}}

    def test_too_few_shares_are_made_up(self) -> None:
        server = self.boot_gold()
        self.put(server, {self.one: {**BARE, SHARES: 50}})
        assert self.heal("--apply") == {server: {SHARES: 150}}
        self.put(server, {self.one: {**BARE, SHARES: 300}})  # of a faulty change: nothing lacks
        assert self.heal("--apply") == {}
        assert self.held(server) == {"one": {**BARE, SHARES: 300}}

    def test_what_a_shelved_server_still_has(self) -> None:
        server = self.boot_gold()
        self._shelve_server({"id": server})
        self.put(server, {self.two: BARE})
        said = self.said("--apply", status=1)
        assert "of two: left on a host that the server is not on. openstack" in said
        assert self.held(server) == {"two": BARE}

    def test_an_evacuated_server_is_healed_on_its_new_host(self) -> None:
        server = self.boot_gold()
        self.go_down("one")
        self._evacuate_server({"id": server}, expected_host="two", expected_state="ACTIVE")
        said = self.said("--apply", status=0)
        assert self.held(server) == {"one": BARE, "two": {**BARE, SHARES: 200}}
        assert "of one: left on the host that the server was evacuated from, which Nova" in said
        self.restart("one")  # what heal advises
        assert self.held(server) == {"two": {**BARE, SHARES: 200}}

    def test_a_migration_that_is_over_has_nothing_to_hold(self) -> None:
        server = self.boot_gold()
        admin = context.get_admin_context()
        move = objects.Migration(
            admin,
            instance_uuid=server,
            migration_type="live-migration",
            status="error",
            source_compute="two",
            source_node="two",
        )
        move.create()
        self.put(move.uuid, {self.two: BARE})
        said = self.said("--apply", status=0)
        assert f"consumer {move.uuid} has 512 MEMORY_MB, 2 VCPU of two: of no server" in said
        assert self.held(move.uuid) == {"two": BARE}


class TestMoves(Heals):
    """A move that is not over is no fault: both of its parts are healed, and nothing is named."""

    def healed(self, server: str, migration: str) -> dict[str, Any]:
        said = self.commands.run("allocation", "heal", "--apply")
        assert "Left alone" not in said.error
        assert {row["consumer"] for row in said.rows} == {server, migration}
        return {row["consumer"]: row["adds"][SHARES] for row in said.rows}

    def test_an_unconfirmed_resize(self) -> None:
        server, migration = resize_from_one(self)
        assert self.healed(server, migration) == {server: 300, migration: 50}

    def test_a_live_migration(self) -> None:
        server, migration = live_migrate_from_one(self)
        assert self.healed(server, migration) == {server: 50, migration: 50}
