"""``cpu-tiers reshape plan`` and ``apply`` for NUMA nodes, beside Nova's services."""

from typing import Any
from unittest import mock

from nova import context, objects

from cpu_tiers.model.names import MULTIPLIER_TRAIT
from tests.nova.computes import MULTIPLIER, Computes
from tests.nova.numa.hosts import SHARES
from tests.nova.numa.moves import MOVING, NUMA, PINNED, MoveCommands, Moves
from tests.nova.reshapes import CLIENT, POWER_OFF, live_migrate_from_one, resize_from_one


class TestOffline(Moves):
    def test_servers_that_changed_since_an_offline_plan(self) -> None:
        self.start_host("one")
        stays, goes, loses = (self.boot_on("one", self.flavor(name)) for name in "abc")
        path = self.commands.folder / "plan.json"
        self.commands.offline("--save", path)
        self._delete_server({"id": goes})
        comes = self.boot_on("one", self.flavor("d"))
        body = self.placement.get(f"/allocations/{loses}", version="1.28").body
        (held,) = body["allocations"].values()
        held["resources"] = {"MEMORY_MB": 256}
        assert self.placement.put(f"/allocations/{loses}", body, version="1.28").status == 204
        generations = self.tree.generations("one")
        said = self.commands.ask("apply", path, status=1)
        assert f"consumer {comes}: is not in the plan; make the plan again" in said.error
        assert (
            f"({loses}), flavor c: holds 256 MEMORY_MB, but 512 MEMORY_MB, 1 VCPU when the plan"
            in said.error
        )
        assert f"({stays})" not in said.error
        assert f"({goes})" not in said.error
        assert self.tree.generations("one") == generations

    def test_a_resize_with_a_new_flavor_unknown_to_the_database(self) -> None:
        uuid, migration = resize_from_one(self, stop="resize_instance")
        server = objects.Instance.get_by_uuid(context.get_admin_context(), uuid, ["flavor"])
        server.new_flavor = None  # as at the moment when the destination hears of it
        server.save()
        assert self.commands.goes_to("--offline").keys() == {migration}
        said = self.commands.ask("plan", "--offline", host="two", status=1)
        assert "is being resized, and Nova does not know its new flavor yet" in said.error


class Applied(Computes):
    kind = MOVING

    def setUp(self) -> None:
        super().setUp()
        self.commands = MoveCommands(self)

    def planned_and_done(self, host: str = "one") -> dict[str, Any]:
        """Plan both ways, carry it out, and compare; the restart then moves nothing."""
        path = self.commands.folder / "plan.json"
        planned = self.commands.goes_to(host=host)
        assert self.commands.offline("--save", path, host=host) == planned
        before = {consumer: self.held(consumer) for consumer in planned}
        self.computes[host].stop()
        changes = self.commands.ask("apply", path, host=host).rows
        assert len([c for c in changes if c["what"].startswith("allocations of")]) == len(planned)
        for consumer, resources in planned.items():
            others = {name: held for name, held in before[consumer].items() if name != host}
            assert self.held(consumer) == resources | others
        said = self.commands.ask("apply", path, host=host)
        assert said.rows == []
        assert "nothing was changed" in said.error
        generations, traits = self.tree.generations(host), self.tree.traits(host, host)
        self.nodes(True)
        with mock.patch.object(CLIENT, "_reshape") as reshaped:
            self.restart(host)
        reshaped.assert_not_called()
        # A host that has just begun to report shares also reports that it gives weights.
        new_traits = self.tree.traits(host, host) - traits
        assert new_traits <= {MULTIPLIER_TRAIT}
        generations[host] += len(new_traits)
        assert self.tree.generations(host) == generations
        assert self.commands.goes_to(host=host) == {}
        return planned


class TestPlanAndApply(Applied):
    def test_servers_of_every_kind(self) -> None:
        self.start_host("one")
        numa = self.boot_on("one", self.flavor("numa", NUMA, vcpus=2))
        pinned = self.boot_on("one", self.flavor("pinned", PINNED, vcpus=2))
        plain = self.boot_on("one", self.flavor("plain", vcpus=2))
        assert self.planned_and_done() == {
            numa: {
                "one_NUMA0": {"VCPU": 1},
                "one_NUMA0_PAGES_4": {"MEMORY_MB": 256},
                "one_NUMA1": {"VCPU": 1},
                "one_NUMA1_PAGES_4": {"MEMORY_MB": 256},
            },
            pinned: {"one_NUMA0": {"PCPU": 2}, "one_NUMA0_PAGES_2048": {"MEMORY_MB": 512}},
            plain: {"one_NUMA0": {"VCPU": 2}, "one_NUMA0_PAGES_4": {"MEMORY_MB": 512}},
        }

    def test_shares_come_first_and_go_along(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "25", vcpus=2))
        numa = self.boot_on("one", self.flavor("numa", NUMA | {MULTIPLIER: "10"}, vcpus=2))
        self.boot_on("one", self.flavor("pinned", PINNED | {MULTIPLIER: "10"}, vcpus=2))
        self.reporting(True)
        added = {row["consumer"]: row["adds"] for row in self.commands.ask("plan").rows}
        assert {c: adds for c, adds in added.items() if adds} == {
            gold: {SHARES: 50},  # 25 x 2
            numa: {SHARES: 20},  # 10 x 2, one half for each node; no dedicated vCPU claims any
        }
        planned = self.planned_and_done()
        assert planned[gold]["one_NUMA0"] == {"VCPU": 2, SHARES: 50}
        assert planned[numa]["one_NUMA0"] == planned[numa]["one_NUMA1"] == {"VCPU": 1, SHARES: 10}

    def test_the_driver_writes_the_planned_allocations(self) -> None:
        _, migration = live_migrate_from_one(self)
        for name, specs in (("numa", NUMA), ("pinned", PINNED), ("plain", {})):
            self.boot_on("one", self.flavor(name, {MULTIPLIER: "10", **specs}, vcpus=2))
        self.reporting(True)
        planned = self.commands.goes_to()
        assert planned == self.commands.offline()
        assert len(planned) == 4
        shares = [held[SHARES] for held in planned[migration].values() if SHARES in held]
        assert shares == [50]  # 25 x 2, the old flavor
        self.nodes(True)
        self.restart("one")
        assert {consumer: self.held(consumer) for consumer in planned} == planned

    def test_an_unconfirmed_resize(self) -> None:
        server, migration = resize_from_one(self)
        assert self.planned_and_done("one").keys() == {migration}
        # 3 vCPUs on nodes of 2 shared CPUs: that server does not fit there
        assert self.commands.refused("two").keys() == {server}

    def test_a_resize_on_a_single_host(self) -> None:
        self.flags(allow_resize_to_same_host=True)
        self.start_host("one")
        server = self.boot_on("one", self.flavor("numa", NUMA, vcpus=2))
        with mock.patch(POWER_OFF, return_value="{}"):
            self._resize_server({"id": server}, self.flavor("pinned", PINNED, vcpus=2))
        planned = self.planned_and_done()
        assert planned[self.migration_of(server)]["one_NUMA1"] == {"VCPU": 1}
        assert planned[server]["one_NUMA0"] == {"PCPU": 2}

    def test_a_live_migration_under_way(self) -> None:
        server, migration = live_migrate_from_one(self)
        assert self.planned_and_done("one").keys() == {migration}
        assert self.planned_and_done("two").keys() == {server}

    def test_an_evacuated_server_holds_both_hosts(self) -> None:
        self.start_host("one")
        self.start_host("two")
        server = self.boot_on("one", self.flavor("plain"))
        self.go_down("one")
        self._evacuate_server({"id": server}, expected_host="two", expected_state="ACTIVE")
        assert self.planned_and_done("two").keys() == {server}
        assert self.planned_and_done("one").keys() == {server}

    def test_dedicated_cpus_on_a_host_that_reports_vcpu_alone(self) -> None:
        self.flags(cpu_shared_set=None, cpu_dedicated_set=None, group="compute")
        self.flags(initial_cpu_allocation_ratio=1.0)
        self.start_host("one")
        pinned = self.boot_on("one", self.flavor("pinned", PINNED, vcpus=2))
        assert self.planned_and_done()[pinned]["one_NUMA0"] == {"VCPU": 2}


class TestRefusals(Moves):
    def test_a_server_without_room_is_named_and_nothing_is_saved(self) -> None:
        self.start_host("one")
        large = self.boot_on("one", self.flavor("large", vcpus=3))
        small = self.boot_on("one", self.flavor("small"))
        path = self.commands.folder / "plan.json"
        generations = self.tree.generations("one")
        said = self.commands.ask("plan", "--save", path, status=1)
        given = (
            "holds 512 MEMORY_MB, 3 VCPU; no NUMA node can hold all of it"
            " (one_NUMA0: 3 VCPU: one server may have at most 2 (max_unit);"
            " one_NUMA1: 3 VCPU: one server may have at most 2 (max_unit))"
        )
        assert {row["consumer"]: row["reason"] for row in said.rows} == {large: given, small: ""}
        assert f"({large}), flavor large: {given}; move it to " in said.error
        assert "nova-compute would refuse to start" in said.error
        assert not path.exists()
        assert self.tree.generations("one") == generations
        assert self.commands.refused("one", "--offline") == {large: given}

    def test_arguments_and_nova_conf_that_do_not_go_together(self) -> None:
        self.start_host("one")
        said = self.commands.run("reshape", "plan", "--host", "one", status=1)
        assert "give --capabilities FILE or --connect URI" in said.error
        path = self.commands.folder / "plan.json"
        self.commands.offline("--save", path)
        self.commands.wanted = "false"
        for arguments in (("plan",), ("plan", "--offline"), ("apply", path)):
            said = self.commands.ask(*arguments, status=1)
            assert "nova.conf, [compute] enable_numa_reporting_to_placement: not tr" in said.error
        self.commands.wanted = "true"
        said = self.commands.ask(
            "plan", "--save", self.commands.folder / "no" / "plan.json", status=1
        )
        assert "plan.json: cannot be written (there is no folder " in said.error
