"""Servers that run before their host reports shares, in Nova's services and a real Placement."""

from collections.abc import Callable
from typing import Any
from unittest import mock

from tests.nova.computes import OURS, PLAIN, SHARES
from tests.nova.faults import placement_away
from tests.nova.reshapes import (
    CLIENT,
    PLACEMENT,
    POWER_OFF,
    RESHAPE,
    RPC,
    Reshapes,
    live_migrate_from_one,
    resize_from_one,
    start_reporting,
)


class Killed(BaseException):
    """The service is gone from one moment to the next: nothing of Nova catches this."""


def killed(*_: Any) -> None:
    raise Killed


class TestReshape(Reshapes):
    def test_servers_with_multiplier_or_domain_shares_get_the_flavors_shares(self) -> None:
        self.flags(initial_cpu_allocation_ratio=4.0)
        self.flags(cpu_shared_set="0-3", cpu_dedicated_set="4-7", group="compute")
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        bronze = self.boot_on("one", self.tier("bronze", "2.5", vcpus=3))
        plain = self.boot_on("one", self.flavor("plain", {PLAIN: "70"}, vcpus=2))
        none = self.boot_on("one", self.flavor("none"))
        pinned_specs = {PLAIN: "70", "hw:cpu_policy": "dedicated"}
        pinned = self.boot_on("one", self.flavor("pinned", pinned_specs, vcpus=2))
        assert start_reporting(self, "one") == 1
        assert self.allocated(gold) == {"one": 200}  # 100 x 2
        assert self.allocated(bronze) == {"one": 8}  # 2.5 x 3 = 7.5
        assert self.allocated(plain) == {"one": 70}
        assert self.allocated(none) == {"one": None}
        assert self.allocated(pinned) == {"one": None}  # no shared vCPU
        assert self.inventory("one") is not None
        assert start_reporting(self, "one") == 0

    def test_an_empty_host_just_reports(self) -> None:
        self.start_host("one")
        self.boot_on("one", self.flavor("none"))
        assert start_reporting(self, "one") == 0
        assert self.inventory("one") is not None

    def test_servers_older_than_the_request_for_shares_get_shares_at_the_next_start(
        self,
    ) -> None:
        self.reporting(True)
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        assert self.allocated(server) == {"one": None}
        assert start_reporting(self, "one") == 1
        assert self.allocated(server) == {"one": 100}

    def test_outside_of_a_start_nothing_is_reshaped_or_reported(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        self.reporting(True)
        with placement_away():
            self.restart("one")
        self._run_periodics()
        assert self.inventory("one") is None
        assert "one reports CUSTOM_VCPU_SHARES after a restart" in self.stdlog.logger.output
        self.flags(vcpu_share_multiplier=1, group="libvirt")  # it would not fit
        self.boot_on("one", self.flavor("none"))  # builds go on
        assert self.inventory("one") is None
        self.flags(vcpu_share_multiplier=100, group="libvirt")
        assert start_reporting(self, "one") == 1
        assert self.allocated(server) == {"one": 100}


class TestHandOver(Reshapes):
    """From a provider.yaml to the driver, and back to Nova's own driver with one."""

    def test_the_driver_takes_over_from_a_file(self) -> None:
        self.provider_yaml("$COMPUTE_NODE", 640)
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        self.no_provider_yaml()
        assert start_reporting(self, "one") == 1
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["total"] == 1600  # 16 x 100
        assert self.allocated(server) == {"one": 100}

    def test_a_file_takes_over_from_the_driver(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100"))
        start_reporting(self, "one")
        self.reporting(False)
        self.provider_yaml("one", 1600)
        for driver in (OURS, "libvirt.LibvirtDriver"):
            self.flags(compute_driver=driver)
            self.restart("one")
            self._run_periodics()
            inventory = self.inventory("one")
            assert inventory is not None
            assert inventory["total"] == 1600
            assert self.allocated(server) == {"one": 100}


class TestStrangers(Reshapes):
    def test_a_consumer_that_nova_does_not_know_is_left_alone(self) -> None:
        one = self.start_host("one")
        stranger = "5f5a0a4e-0000-4000-8000-000000000001"
        body = {
            "allocations": {one: {"resources": {"VCPU": 1}}},
            "consumer_generation": None,
            "project_id": "p",
            "user_id": "u",
        }
        assert self.placement.put(f"/allocations/{stranger}", body, version="1.28").status == 204
        server = self.boot_on("one", self.tier("gold", "100"))
        assert start_reporting(self, "one") == 1
        assert self.allocated(stranger) == {"one": None}
        assert self.allocated(server) == {"one": 100}
        assert f"Nova knows no flavor of consumer {stranger} on one" in self.stdlog.logger.output


class TestMoves(Reshapes):
    """A migration holds the source with the old flavor, the server holds the destination."""

    def test_an_unconfirmed_resize(self) -> None:
        server, migration = resize_from_one(self)
        assert start_reporting(self, "one", "two") == 2
        assert self.allocated(migration) == {"one": 50}  # 25 x 2, the old flavor
        assert self.allocated(server) == {"two": 300}  # 100 x 3, the new one
        assert start_reporting(self, "one", "two") == 0
        self._revert_resize({"id": server})
        assert self.allocated(server) == {"one": 50}
        assert self.allocated(migration) == {}

    def test_a_confirmed_resize_leaves_the_destination(self) -> None:
        server, migration = resize_from_one(self)
        assert start_reporting(self, "one", "two") == 2
        self._confirm_resize({"id": server})
        assert self.allocated(server) == {"two": 300}
        assert self.allocated(migration) == {}

    def test_a_resize_on_a_single_host(self) -> None:
        server, migration = resize_from_one(self, same_host=True)
        assert start_reporting(self, "one") == 1
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"one": 300}

    def test_a_resize_that_the_source_has_not_heard_of(self) -> None:
        server, migration = resize_from_one(self, stop="resize_instance")
        assert start_reporting(self, "one", "two") == 2
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"two": 300}

    def test_a_resize_that_the_destination_has_not_finished(self) -> None:
        server, migration = resize_from_one(self, stop="finish_resize")
        assert start_reporting(self, "one", "two") == 2
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"two": 300}

    def test_a_resize_that_the_destination_has_not_heard_of_waits(self) -> None:
        server, migration = resize_from_one(self, stop="prep_resize")
        assert start_reporting(self, "one", "two") == 1
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"two": None}
        assert f"Nova knows no flavor of consumer {server} on two" in self.stdlog.logger.output

    def test_a_cold_migration_at_each_step(self) -> None:
        self.start_host("one")
        self.start_host("two")
        self.reporting(True)
        gold = self.tier("gold", "100", vcpus=2)
        moves = []
        for stop in ("prep_resize", "resize_instance", "finish_resize"):
            server = self.boot_on("one", gold)
            with (
                mock.patch(POWER_OFF, return_value="{}"),
                mock.patch(f"{RPC}.{stop}") as lost,
            ):
                self.api.post_server_action(server, {"migrate": None})
                self._wait_for_assert(lost.assert_called)
            moves.append((server, self.migration_of(server)))
        assert start_reporting(self, "two", "one") == 2
        for server, migration in moves:
            assert self.allocated(migration) == {"one": 200}  # 100 x 2, here and there
            assert self.allocated(server) == {"two": 200}
        assert start_reporting(self, "two", "one") == 0

    def test_an_evacuation_that_the_destination_has_not_heard_of(self) -> None:
        server = self.evacuate(stop=True)
        assert start_reporting(self, "two") == 1
        # Nova keeps what is on the dead host until that comes back.
        assert self.allocated(server) == {"one": None, "two": 200}
        assert start_reporting(self, "two") == 0

    def test_an_evacuation_and_the_dead_host_comes_back(self) -> None:
        server = self.evacuate()
        assert start_reporting(self, "two") == 1
        assert self.allocated(server) == {"one": None, "two": 200}
        assert start_reporting(self, "one") == 0  # it removes what it lost, and lacks nothing
        assert self.allocated(server) == {"two": 200}

    def evacuate(self, *, stop: bool = False) -> str:
        """Evacuate a gold server of 2 vCPUs from one to two; return its uuid.

        :param stop: the call to the destination is lost on the way.
        """
        self.start_host("one")
        self.start_host("two")
        server = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        self.go_down("one")
        if stop:
            with mock.patch(f"{RPC}.rebuild_instance") as lost:
                self.api.post_server_action(server, {"evacuate": {}})
                self._wait_for_assert(lost.assert_called)
        else:
            self._evacuate_server({"id": server}, expected_host="two", expected_state="ACTIVE")
        assert self.allocated(server) == {"one": None, "two": None}
        return server

    def test_a_live_migration_under_way(self) -> None:
        server, migration = live_migrate_from_one(self)
        assert start_reporting(self, "one", "two") == 2
        assert self.allocated(migration) == {"one": 50}
        assert self.allocated(server) == {"two": 50}


class TestDoesNotFit(Reshapes):
    def test_a_server_without_room_is_named_and_nothing_is_changed(self) -> None:
        self.flags(vcpu_share_multiplier=5, group="libvirt")  # 16 CPUs x 5 = 80
        self.start_host("one")
        bronze = self.boot_on("one", self.tier("bronze", "30"))
        silver = self.boot_on("one", self.tier("silver", "60"))
        gold = self.boot_on("one", self.tier("gold", "100"))
        self.reporting(True)
        message = self.restart_refused("one")
        # bronze takes 30 of 80
        assert f"({silver}), flavor silver: asks one for 60 {SHARES}" in message
        assert "50 of 80 are left" in message
        assert f"({gold}), flavor gold: asks one for 100 {SHARES}" in message
        assert "one server may have at most 80" in message
        assert bronze not in message
        assert self.inventory("one") is None
        for server in (bronze, silver, gold):
            assert self.allocated(server) == {"one": None}
        self.reporting(False)  # the way back that the message names
        self.restart("one")
        self.flags(vcpu_share_multiplier=100, group="libvirt")  # and the way on
        assert start_reporting(self, "one") == 1
        assert self.allocated(gold) == {"one": 100}


class TestKilled(Reshapes):
    def killed(self, method: str, doing: Callable[..., Any]) -> str:
        """Kill a compute that reshapes, in a method of the report client; return its server."""
        self.start_host("one")
        server = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        self.reporting(True)
        with mock.patch.object(CLIENT, method, doing):
            self.restart_refused("one", Killed)
        return server

    def finished(self, server: str) -> None:
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["total"] == 1600  # 16 x 100
        assert self.allocated(server) == {"one": 200}  # 100 x 2
        assert start_reporting(self, "one") == 0

    def test_before_the_call(self) -> None:
        server = self.killed("_reshape", killed)
        assert self.allocated(server) == {"one": None}
        assert self.inventory("one") is None
        assert start_reporting(self, "one") == 1
        self.finished(server)

    def test_during_the_call(self) -> None:
        def answer_lost(*args: Any) -> None:
            RESHAPE(*args)
            raise Killed

        server = self.killed("_reshape", answer_lost)
        assert start_reporting(self, "one") == 0
        self.finished(server)

    def test_after_the_call(self) -> None:
        server = self.killed("set_traits_for_provider", killed)
        assert start_reporting(self, "one") == 0
        self.finished(server)


class TestOvercommitted(Reshapes):
    def test_a_host_with_more_allocated_vcpu_than_the_new_ratio_allows(self) -> None:
        self.flags(initial_cpu_allocation_ratio=4.0)
        self.start_host("one")
        servers = [self.boot_on("one", self.tier(f"t{n}", "10", vcpus=6)) for n in range(3)]
        self.flags(cpu_allocation_ratio=1.0)  # 16 VCPU, 18 are held
        if PLACEMENT < 14:
            # Our own check is of shares alone.
            self.reporting(True)
            message = self.restart_refused("one")
            assert "Unable to create allocation for 'VCPU'" in message
            assert self.inventory("one") is None
            assert self.allocated(servers[0]) == {"one": None}
            self.flags(cpu_allocation_ratio=1.125)  # the way on: 16 x 1.125 = 18
        assert start_reporting(self, "one") == 1
        for server in servers:
            assert self.allocated(server) == {"one": 60}
