"""``cpu-tiers reshape plan`` and ``allocation heal``, beside Nova's services."""

from functools import partial
from typing import Any
from unittest import mock

from nova import context, objects
from nova.conductor.manager import ConductorManager
from nova.objects import base
from nova.tests.fixtures.nova import IndirectionAPIFixture
from oslo_messaging import ExpectedException

from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from tests.nova.command_line import Commands, Heals, services_of
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES
from tests.nova.reshapes import (
    PLACEMENT,
    live_migrate_from_one,
    resize_from_one,
    start_reporting,
)

NOWHERE = "5f5a0a4e-0000-4000-8000-000000000001"


class TestReshapePlan(Commands):
    def held_on(self, host: str) -> dict[str, dict[str, int]]:
        uuid = self.compute_rp_uuids[host]
        body = self.placement.get(f"/resource_providers/{uuid}/allocations").body
        return {consumer: held["resources"] for consumer, held in body["allocations"].items()}

    def planned(self, host: str, *, status: int = 0) -> dict[str, int]:
        rows = self.commands.run("reshape", "plan", "--host", host, status=status).rows
        assert all(row["host"] == host for row in rows)
        return {row["consumer"]: row["adds"][SHARES] for row in rows}

    def planned_and_done(self, host: str) -> dict[str, int]:
        """Plan, restart, and compare the plan with what the restart changed."""
        before, planned = self.held_on(host), self.planned(host)
        assert self.held_on(host) == before
        start_reporting(self, host)
        done = {
            consumer: {
                name: amount - before[consumer].get(name, 0) for name, amount in now.items()
            }
            for consumer, now in self.held_on(host).items()
            if now != before[consumer]
        }
        expected = {consumer: {SHARES: amount} for consumer, amount in planned.items()}
        assert {
            c: {n: a for n, a in gained.items() if a} for c, gained in done.items()
        } == expected
        assert self.planned(host) == {}
        return planned

    def test_servers_at_rest(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        bronze = self.boot_on("one", self.tier("bronze", "2.5", vcpus=3))
        plain = self.boot_on("one", self.flavor("plain", {PLAIN: "70"}))
        self.boot_on("one", self.flavor("none"))
        # 100 x 2; 2.5 x 3 = 7.5
        assert self.planned_and_done("one") == {gold: 200, bronze: 8, plain: 70}

    def test_an_unconfirmed_resize(self) -> None:
        server, migration = resize_from_one(self)
        assert self.planned_and_done("one") == {migration: 50}  # 25 x 2, the old flavor
        assert self.planned_and_done("two") == {server: 300}  # 100 x 3, the new one

    def test_a_resize_on_a_single_host(self) -> None:
        server, migration = resize_from_one(self, same_host=True)
        said = self.commands.run("reshape", "plan", "--host", "one")
        rows = {row["consumer"]: (row["server"], row["flavor"]) for row in said.rows}
        assert rows == {migration: (server, "bronze"), server: (server, "gold")}
        assert self.planned_and_done("one") == {migration: 50, server: 300}

    def test_a_resize_that_the_destination_has_not_heard_of(self) -> None:
        _, migration = resize_from_one(self, stop="prep_resize")
        assert self.planned_and_done("one") == {migration: 50}
        assert self.planned_and_done("two") == {}

    def test_a_live_migration_under_way(self) -> None:
        server, migration = live_migrate_from_one(self)
        assert self.planned_and_done("one") == {migration: 50}
        assert self.planned_and_done("two") == {server: 50}

    def test_the_plan_names_the_servers_that_a_restart_would_name(self) -> None:
        self.flags(vcpu_share_multiplier=5, group="libvirt")  # 16 CPUs x 5 = 80
        self.start_host("one")
        bronze = self.boot_on("one", self.tier("bronze", "30"))
        silver = self.boot_on("one", self.tier("silver", "60"))
        gold = self.boot_on("one", self.tier("gold", "100"))
        said = self.commands.run("reshape", "plan", "--host", "one", status=1)
        assert {row["consumer"]: row["reason"] for row in said.rows} == {
            bronze: "",
            silver: f"60 {SHARES}: only 50 of 80 are left",
            gold: f"100 {SHARES}: one server may have at most 80 (max_unit)",
        }
        assert {row["consumer"] for row in said.rows if row["fits"]} == {bronze}
        self.reporting(True)
        refusal = self.restart_refused("one")
        named = [line for line in said.error.splitlines() if line.startswith("server ")]
        assert len(named) == 2
        assert all(line in refusal for line in named)
        assert "would refuse to start" in said.error

    def test_an_unknown_host(self) -> None:
        said = self.commands.run("reshape", "plan", "--host", "nowhere", status=1)
        assert said.rows == []
        assert said.error.startswith("host nowhere: Nova has no compute host of that name; ")
        assert "compute service list" in said.error

    def test_nothing_to_do(self) -> None:
        self.start_host("one")
        self.boot_on("one", self.flavor("none"))
        said = self.commands.run("reshape", "plan", "--host", "one")
        assert said.rows == []
        assert "vcpu_share_multiplier 100 gives 1600 shares" in said.error  # 16 CPUs
        assert "No server lacks shares" in said.error


class Asked:
    """nova-conductor, called directly instead of over a message bus."""

    def __init__(self, calls: list[str]) -> None:
        self.manager = ConductorManager()
        self.calls = calls

    def object_class_action_versions(
        self, context: Any, name: str, method: str, versions: Any, args: Any, kwargs: Any
    ) -> Any:
        self.calls.append(f"{name}.{method}")
        with mock.patch.object(base.NovaObject, "indirection_api", None):
            try:
                return self.manager.object_class_action_versions(
                    context, name, method, versions, args, kwargs
                )
            except ExpectedException as error:  # how a service hands it to the bus
                raise error.exc_info[1] from None


class TestWithoutADatabase(Commands):
    """As on a compute host: nova.conf has no ``[api_database] connection``."""

    def setUp(self) -> None:
        # The services are in the process of the command: no heartbeat goes to its conductor.
        self.flags(report_interval=0, service_down_time=3600)
        super().setUp()
        self.useFixture(IndirectionAPIFixture(None))  # restores what was there
        self.calls: list[str] = []

    def ask(self, *arguments: str, status: int = 0) -> Any:
        self.flags(connection=None, group="api_database")
        conductor = Asked(self.calls)
        with mock.patch("cpu_tiers.tools.nova.cloud.rpcapi.ConductorAPI", return_value=conductor):
            said = self.commands.run(*arguments, status=status)
        base.NovaObject.indirection_api = None
        return said

    def test_the_conductor_is_asked(self) -> None:
        server, migration = resize_from_one(self, same_host=True)
        said = self.ask("reshape", "plan", "--host", "one")
        assert {row["consumer"]: row["adds"] for row in said.rows} == {
            migration: {SHARES: 50},
            server: {SHARES: 300},
        }
        assert "Migration.get_by_uuid" in self.calls

    def test_servers_without_allocations(self) -> None:
        self.reporting(True)
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        self.placement.delete(f"/allocations/{server}")
        said = self.ask("allocation", "heal", "--apply")
        assert [row["consumer"] for row in said.rows] == [server]
        assert self.allocated(server) == {"one": 200}

    def test_unknown_names(self) -> None:
        self.start_host("one")
        said = self.ask("reshape", "plan", "--host", "nowhere", status=1)
        assert "no compute host of that name" in said.error
        said = self.ask("allocation", "heal", "--plan", "--server", NOWHERE, status=1)
        assert "no server of that uuid" in said.error


class TestHeal(Heals):
    def test_a_plan_writes_nothing_and_a_second_run_finds_nothing(self) -> None:
        self.start_host("one")
        self.start_host("two")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        silver = self.boot_on("two", self.tier("silver", "50"))
        self.boot_on("two", self.flavor("none"))
        expected = {gold: {SHARES: 200}, silver: {SHARES: 50}}
        assert self.heal("--plan") == expected
        assert self.allocated(gold) == {"one": None}
        assert self.heal("--apply") == expected
        assert self.allocated(gold) == {"one": 200}
        assert self.allocated(silver) == {"two": 50}
        with mock.patch.object(PlacementClient, "set_consumers") as written:
            said = self.commands.run("allocation", "heal", "--apply")
        assert said.rows == []
        assert "hosts that report shares: 2; ports with a resource request: 0" in said.error
        written.assert_not_called()

    def test_the_remaining_allocations_of_a_server_stay(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        before = self.placement.get(f"/allocations/{gold}", version="1.38").body
        self.heal("--apply")
        after = self.placement.get(f"/allocations/{gold}", version="1.38").body
        (held,) = after["allocations"].values()
        assert held["resources"] == {"VCPU": 2, "MEMORY_MB": 512, SHARES: 200}
        assert after["project_id"] == before["project_id"]
        assert after["user_id"] == before["user_id"]

    def test_a_migration_keeps_the_source_of_the_server(self) -> None:
        server, migration = resize_from_one(self)
        assert self.heal("--apply") == {migration: {SHARES: 50}, server: {SHARES: 300}}
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"two": 300}
        for consumer, kind in ((migration, "MIGRATION"), (server, "INSTANCE")):
            body = self.placement.get(f"/allocations/{consumer}", version="1.38").body
            assert body["consumer_type"] == kind
        self._revert_resize({"id": server})
        assert self.allocated(server) == {"one": 50}

    def test_hosts_and_servers_that_are_named(self) -> None:
        self.start_host("one")
        self.start_host("two")
        gold = self.tier("gold", "100")
        here, other, there = (self.boot_on(host, gold) for host in ("one", "one", "two"))
        assert self.heal("--plan", "--host", "two") == {there: {SHARES: 100}}
        assert self.heal("--apply", "--server", here) == {here: {SHARES: 100}}
        assert self.heal("--plan", "--host", "one", "--host", "two").keys() == {other, there}
        said = self.commands.run("allocation", "heal", "--plan", "--server", NOWHERE, status=1)
        assert f"server {NOWHERE}: Nova has no server of that uuid" in said.error

    def test_servers_by_name(self) -> None:
        """An id asks nobody but Nova's database, and a name asks nova-api."""
        self.start_host("one")
        gold = self.tier("gold", "100")
        web, other = (self.boot(gold, name=name)["id"] for name in ("web (1).*", "other"))
        with mock.patch.object(NovaConfCommand, "services", return_value=services_of(self)):
            assert self.heal("--plan", "--server", "web (1).*") == {web: {SHARES: 100}}
            assert self.heal("--apply", "--server", "other") == {other: {SHARES: 100}}
            self.boot(gold, name="other")
            said = self.commands.run(
                "allocation", "heal", "--plan", "--server=other", "--server=none", status=1
            )
        first, second = said.error.splitlines()
        assert "other: Nova's API has 2 servers with this name; give one of the ids: " in first
        assert other in first
        assert "none: Nova's API has no server with this name or id" in second
        assert self.heal("--apply", "--server", web) == {web: {SHARES: 100}}

    def test_a_host_that_reports_no_shares(self) -> None:
        self.no_provider_yaml()
        self.start_host("one")
        self.boot_on("one", self.tier("gold", "100"))
        assert self.heal("--plan") == {}
        said = self.commands.run("allocation", "heal", "--apply", "--host", "one", status=1)
        assert "host one: it reports no shares" in said.error

    def test_a_host_with_more_allocated_vcpu_than_the_new_ratio_allows(self) -> None:
        self.flags(initial_cpu_allocation_ratio=4.0)
        self.start_host("one")
        servers = [self.boot_on("one", self.tier(f"t{n}", "10", vcpus=6)) for n in range(3)]
        self.flags(cpu_allocation_ratio=1.0)  # 16 VCPU, 18 are held
        self.restart("one")
        if PLACEMENT < 14:
            said = self.commands.run("allocation", "heal", "--apply", status=1)
            assert "Unable to create allocation for 'VCPU'" in said.error
            assert self.allocated(servers[0]) == {"one": None}
            self.flags(cpu_allocation_ratio=1.125)  # the way on: 16 x 1.125 = 18
            self.restart("one")
        self.heal("--apply", "--server", servers[0])
        self.heal("--apply")
        for server in servers:
            assert self.allocated(server) == {"one": 60}

    def test_a_host_is_written_whole_or_not_at_all(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "50", vcpus=8))  # 400 of 640
        other = self.boot_on("one", self.tier("silver", "100", vcpus=3))  # 300, and 240 are left
        self.start_host("two")
        fits = self.boot_on("two", self.tier("bronze", "1"))
        said = self.commands.run("allocation", "heal", "--apply", status=1)
        # The smaller is let in first: 640 - 300 = 340
        assert f"({gold}), flavor gold: asks one for 400 {SHARES}: only 340 of 640" in said.error
        assert "one: nothing is written" in said.error
        assert self.allocated(gold) == self.allocated(other) == {"one": None}
        assert self.allocated(fits) == {"two": 1}
        self.heal("--apply", "--server", other)  # the way on
        assert self.allocated(other) == {"one": 300}


class TestHealWithoutAllocations(Heals):
    def test_a_server_gets_all_amounts_that_the_flavor_requests(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        none = self.boot_on("one", self.flavor("none"))
        faults = ({PLAIN: "16384"}, {MULTIPLIER: "100", "hw:cpu_realtime": "perhaps"})
        faulty = [
            self.boot_on("one", self.flavor(f"faulty{number}", specs, vcpus=2))
            for number, specs in enumerate(faults)
        ]
        before = self.placement.get(f"/allocations/{gold}", version="1.38").body
        # Only Cyborg knows the devices of a device profile.
        with_devices = self.boot_on("one", self.flavor("devices", vcpus=1))
        instance = objects.Instance.get_by_uuid(
            context.get_admin_context(), with_devices, expected_attrs=["flavor"]
        )
        instance.flavor.extra_specs["accel:device_profile"] = "fpga"
        instance.save()
        for server in (gold, none, *faulty, with_devices):
            self.placement.delete(f"/allocations/{server}")
        assert self.heal("--apply") == {
            gold: {"VCPU": 2, "MEMORY_MB": 512, SHARES: 200},
            none: {"VCPU": 1, "MEMORY_MB": 512},
            # Faulty shares: none. Faulty CPUs: Nova decides, and 100 x 2 shares.
            faulty[0]: {"VCPU": 2, "MEMORY_MB": 512},
            faulty[1]: {"VCPU": 2, "MEMORY_MB": 512, SHARES: 200},
        }
        after = self.placement.get(f"/allocations/{gold}", version="1.38").body
        assert after["project_id"] == before["project_id"]
        assert after["user_id"] == before["user_id"]
        assert self.heal("--apply") == {}
        self._delete_server({"id": gold})
        assert self.allocated(gold) == {}

    def test_a_server_with_allocations_on_another_host_is_left_alone(self) -> None:
        one, two = self.start_host("one"), self.start_host("two")
        server = self.boot_on("one", self.tier("gold", "100"))
        body = self.placement.get(f"/allocations/{server}", version="1.28").body
        body["allocations"] = {two: body["allocations"][one]}
        assert self.placement.put(f"/allocations/{server}", body, version="1.28").status == 204
        assert self.heal("--plan", "--host", "one", status=1) == {}

    def test_a_server_in_the_middle_of_a_task_is_left_alone(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        self.placement.delete(f"/allocations/{server}")
        found = objects.Instance.get_by_uuid(context.get_admin_context(), server)
        found.task_state = "rebuilding"
        found.save()
        assert self.heal("--plan") == {}

    def test_a_server_without_room_is_named(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.flavor("small"))
        self.placement.delete(f"/allocations/{server}")
        large = self.boot_on("one", self.flavor("large", vcpus=16))  # all that there are
        said = self.commands.run("allocation", "heal", "--apply", status=1)
        assert (
            f"({server}), flavor small: asks one for 1 VCPU: only 0 of 16 are left" in said.error
        )
        assert large not in said.error
        assert self.allocated(server) == {}


class TestConflicts(Heals):
    """Somebody writes the same consumer between our read and our write."""

    def conflict(self, server: str, times: int) -> Any:
        """Let somebody else write it before each of our first writes."""
        write = PlacementClient.set_consumers
        self.writes = 0

        def set_consumers(client: PlacementClient, *consumers: Any) -> None:
            self.writes += 1
            if self.writes <= times:
                body = self.placement.get(f"/allocations/{server}", version="1.28").body
                answer = self.placement.put(f"/allocations/{server}", body, version="1.28")
                assert answer.status == 204
            write(client, *consumers)

        return mock.patch.object(PlacementClient, "set_consumers", set_consumers)

    def test_a_write_with_a_conflict_is_repeated(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        with self.conflict(server, 2):
            assert self.heal("--apply") == {server: {SHARES: 100}}
        assert self.writes == 3
        assert self.allocated(server) == {"one": 100}

    def test_not_for_ever(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        # Two attempts, each of two writes.
        policy = partial(RetryPolicy, conflict_attempts=2)
        twice = mock.patch("cpu_tiers.tools.placement.client.RetryPolicy", policy)
        with twice, self.conflict(server, 99):
            said = self.commands.run("allocation", "heal", "--apply", status=1)
        assert self.writes == 4
        assert "409" in said.error or "conflict" in said.error.lower()
        assert self.allocated(server) == {"one": None}
