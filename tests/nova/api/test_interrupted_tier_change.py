"""A change of the tier that is interrupted, lost, refused, or made by many at the same time."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pkgutil import resolve_name
from typing import Any

import fixtures
import pytest
from keystoneauth1.exceptions import ClientException
from nova import context as nova_context
from nova.compute.rpcapi import ComputeAPI
from nova.objects import Instance
from nova.scheduler.client.report import SchedulerReportClient
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt import base

from cpu_tiers.nova import tier_changes
from cpu_tiers.nova.compute.tier_change import settle
from cpu_tiers.nova.tier_changes import PENDING
from tests import draws
from tests.nova.computes import PLAIN, SHARES
from tests.nova.patience import wait_until
from tests.nova.tier_changes import TierChanges

WRITES = (
    "nova.db.main.api.instance_update_and_get_original",
    "nova.db.main.api.instance_extra_update_by_uuid",
    "nova.db.main.api.migration_create",
    "nova.db.main.api.migration_update",
    "nova.db.main.api.action_event_start",
    "nova.db.main.api.action_event_finish",
    "nova.objects.request_spec.RequestSpec.save",
    "nova.scheduler.client.report.SchedulerReportClient.post",
    "nova.compute.rpcapi.ComputeAPI.inject_network_info",
    "nova.virt.libvirt.guest.Guest.set_metadata",
)
"""Everything that a change of a tier writes."""


class Killed(BaseException):
    """The process has ended: nothing of Nova catches this."""


class Kills(fixtures.Fixture):
    """Ends a process after so many writes, between two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.has_killed = False

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        for name in WRITES:
            module, _, attribute = name.rpartition(".")
            owner = resolve_name(module)
            self.useFixture(fixtures.MonkeyPatch(name, self._counting(getattr(owner, attribute))))

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **kwargs: Any) -> Any:
            if self.left is not None:
                if not self.left:
                    self.has_killed = True
                    raise Killed
                self.left -= 1
            return original(*args, **kwargs)

        return write

    @contextlib.contextmanager
    def after(self, writes: int) -> Iterator[None]:
        self.left, self.has_killed = writes, False
        try:
            with contextlib.suppress(Killed):
                yield
        finally:
            self.left = None


class TestPending(TierChanges):
    def lose_rings(self) -> Any:
        return self.useFixture(fixtures.MockPatchObject(ComputeAPI, "inject_network_info"))

    def test_a_lost_ring(self) -> None:
        self.lose_rings()
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        assert self.is_pending(server)
        assert self.events_of(server) == [("live_tier_change", None, None)]
        assert self.domain_shares(server, "one") == "200"
        assert self.shares_of(server) == 200
        self.report(server)
        self.check(server, "bronze", weight=20, shares=20)
        assert self.events_of(server) == [("live_tier_change", "Success", None)]
        self.api.post_server_action(server, {"revertResize": {}})
        self._wait_for_server_parameter(
            {"id": server}, {"OS-EXT-STS:task_state": "resize_reverting"}
        )
        self.report(server)
        self._wait_for_state_change({"id": server}, "ACTIVE")
        self.check(server, "gold", weight=200, shares=200)

    def test_confirmed_before_the_host_hears(self) -> None:
        self.lose_rings()
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        self.confirm(server)
        self.report(server)
        self.check(server, "bronze", weight=20, shares=20)

    def test_libvirt_refuses(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        self.weights.refuses = True
        self.resize(server, "gold")
        self.report(server)
        assert self.is_pending(server)
        assert self.shares_of(server) == 200
        assert self.events_of(server) == [("live_tier_change", None, None)]
        self.weights.refuses = False
        self.report(server)
        self.check(server, "gold", weight=200, shares=200)

    def test_placement_does_not_answer_in_a_revert(self) -> None:
        """The next report of the host goes on with the revert."""
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        self.check(server, "bronze", weight=20, shares=20)
        silence = fixtures.MockPatchObject(
            SchedulerReportClient, "post", side_effect=ClientException("no route to placement")
        )
        with silence:
            self.api.post_server_action(server, {"revertResize": {}})
            wait_until(lambda: silence.mock.called)
        assert self.instance(server).task_state == "resize_reverting"
        assert self.is_pending(server)
        assert self.shares_of(server) == 20
        assert self.held(self.migration_of(server)) == {"one": {SHARES: 180}}
        self.report(server)
        self._wait_for_state_change({"id": server}, "ACTIVE")
        self.check(server, "gold", weight=200, shares=200)

    def test_the_host_is_down(self) -> None:
        """Nova does not know yet that nova-compute is down, and starts it later."""
        server = self.boot_on("one", self.flavors["bronze"])
        self.computes["one"].stop()
        self.resize(server, "gold")
        self.restart("one")
        self.check(server, "gold", weight=200, shares=200)

    def test_changes_without_end(self) -> None:
        """Of a user who changes the tier again in each round, the host follows ten changes."""
        self.lose_rings()
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        tiers, rounds = itertools.cycle(("silver", "bronze")), list[str]()

        def change_again(instance: Instance) -> None:
            rounds.append(instance.flavor.name)
            self.confirm(server)
            self.resize(server, next(tiers))

        settle(nova_context.get_admin_context(), server, change_again)
        assert rounds == ["bronze", "silver"] * 5
        assert self.is_pending(server)
        self.report(server)
        self.check(server, "bronze", weight=20, shares=20)

    def test_the_next_change_before_the_host_hears_of_the_first(self) -> None:
        rings = fixtures.MockPatchObject(ComputeAPI, "inject_network_info")
        with rings:
            server = self.boot_on("one", self.flavors["gold"])
            self.resize(server, "bronze")
            self.confirm(server)
            self.resize(server, "silver")
        self.report(server)
        self.check(server, "silver", weight=100, shares=100)


AMOUNTS = {"bronze": 20, "silver": 100, "gold": 200}


class TestMoved(base.LibvirtMigrationMixin, TierChanges):
    """A server whose change is pending can be moved, and has its tier on the other host."""

    def test_a_live_migration(self) -> None:
        with fixtures.MockPatchObject(ComputeAPI, "inject_network_info"):
            for before, after, weight in (("gold", "bronze", 20), ("bronze", "gold", 200)):
                server = self.boot_on("one", self.flavors[before])
                self.resize(server, after)
                self.confirm(server)
                assert self.is_pending(server)
                self.server = {"id": server}
                self.src, self.dest = self.computes["one"], self.computes["two"]
                self._live_migrate(self.server, "completed")
                assert self.host_of(self.server) == "two"
                self.report(server)
                self.check(server, after, weight=weight, shares=weight)
                assert self.held(server).keys() == {"two"}
                assert "one" not in self.tree.used()

    def test_a_cold_migration_and_the_way_back(self) -> None:
        with fixtures.MockPatchObject(ComputeAPI, "inject_network_info"):
            server = self.boot_on("one", self.flavors["gold"])
            self.resize(server, "bronze")
            self.confirm(server)
            self._migrate_server({"id": server})
            assert self.host_of({"id": server}) == "two"
            self.revert(server)
            self.report(server)
            self.check(server, "bronze", weight=20, shares=20)
            assert self.tree.used().keys() == {"one"}


class TestKilled(TierChanges):
    """A process ends between two writes. A start of nova-compute, or a resize, mends all."""

    def setUp(self) -> None:
        super().setUp()
        self.powers_off = False
        self.kills = self.useFixture(Kills())
        self.server = self.boot_on("one", self.flavors["silver"])

    def settle(self) -> None:
        """Do what nova-compute does for the server when it starts.

        If the host has gone down with the process, Nova starts its guests again.
        """
        if self.powers_off:
            connection = self.computes["one"].driver._host.get_connection()
            connection.lookupByUUIDString(self.server).destroy()
            self.flags(resume_guests_state_on_host_boot=True)
        manager = self.computes["one"].manager
        with self.on_host(self.server):
            manager._init_instance(nova_context.get_admin_context(), self.instance(self.server))
        self.report(self.server)

    def check_consistent(self, *tiers: str) -> None:
        """Check that a server has one of some tiers, in all that counts.

        Only the request spec may still have the higher tier: the next move would claim too much.
        """
        tier, requested = self.flavors_of(self.server)
        assert tier in tiers
        assert AMOUNTS[requested] >= AMOUNTS[tier]
        assert not self.is_pending(self.server)
        assert self.shares_of(self.server) == AMOUNTS[tier]
        assert self.domain_shares(self.server, "one") == str(AMOUNTS[tier])
        connection = self.computes["one"].driver._host.get_connection()
        assert connection.lookupByUUIDString(self.server).isActive()

    def change(self, tier: str) -> None:
        """Give the server a tier by a command of the user, whatever was before."""
        if self.api.get_server(self.server)["status"] == "VERIFY_RESIZE":
            self.confirm(self.server)
        if self.flavors_of(self.server)[0] != tier:
            self.resize(self.server, tier)
            self.report(self.server)
            self.confirm(self.server)
            shares = AMOUNTS[tier]
            self.check(self.server, tier, weight=shares, shares=shares)
            assert self.tree.used()["one"][SHARES] == shares

    def ends(self, act: Callable[[], object]) -> range:
        """Return after how many writes of an act a process is to end: some of them each day."""
        self.kills.left = 1000
        act()
        assert self.kills.left is not None
        writes, self.kills.left = 1000 - self.kills.left, None
        assert writes >= 3
        return range(draws.SEED % draws.DAYS, writes, draws.DAYS)

    def test_nova_api_ends(self) -> None:
        self.end_nova_api()

    def test_nova_api_ends_and_the_host_is_powered_off(self) -> None:
        self.powers_off = True
        self.end_nova_api()

    def end_nova_api(self) -> None:
        """Twelve writes of a change, between which nova-api may end."""
        self.useFixture(fixtures.MockPatchObject(ComputeAPI, "inject_network_info"))
        for tier, other in (("gold", "bronze"), ("bronze", "gold")):
            body = {"resize": {"flavorRef": self.flavors[tier]}}
            ask = functools.partial(self.api.post_server_action, self.server, body)
            ends = self.ends(ask)
            self.settle()
            self.change("silver")
            for writes in ends:
                with self.kills.after(writes), contextlib.suppress(OpenStackApiException):
                    ask()
                assert self.kills.has_killed
                self.settle()
                self.check_consistent("silver", tier)
                self.change(other)
                self.change("silver")

    def test_nova_compute_ends(self) -> None:
        self.end_nova_compute()

    def test_the_host_is_powered_off(self) -> None:
        self.powers_off = True
        self.end_nova_compute()

    def end_nova_compute(self) -> None:
        """In a change, and in its revert."""
        self.useFixture(fixtures.MockPatchObject(ComputeAPI, "inject_network_info"))
        for tier in ("gold", "bronze"):
            for reverts in (False, True):
                self.prepare(tier, reverts=reverts)
                ends = self.ends(lambda: self.report(self.server))
                self.change("silver")
                for writes in ends:
                    self.prepare(tier, reverts=reverts)
                    with self.kills.after(writes):
                        self.report(self.server)
                    assert self.kills.has_killed
                    self.settle()
                    self.check_consistent("silver" if reverts else tier)
                    self.change("silver")

    def prepare(self, tier: str, *, reverts: bool) -> None:
        """Leave a change, or its revert, to the next report of the host."""
        self.resize(self.server, tier)
        if reverts:
            self.report(self.server)
            self.api.post_server_action(self.server, {"revertResize": {}})


class TestMany(TierChanges):
    """Eight servers want more at the same time, and their host has room for half of them."""

    def test_never_sold_twice(self) -> None:
        small = self.flavor("small", {PLAIN: "10"})
        large = self.flavor("large", {PLAIN: "170"})
        servers = [self.boot_on("one", small) for _ in range(8)]

        def ask(server: str) -> bool:
            try:
                self.api.post_server_action(server, {"resize": {"flavorRef": large}})
            except OpenStackApiException as error:
                return bool(error.response.status_code != 409)
            return True

        with ThreadPoolExecutor(8) as pool:
            done = dict(zip(servers, pool.map(ask, servers), strict=True))
        # 4 x 170 + 4 x 10 = 720 of 800: a fifth server needs 160 more.
        assert sum(done.values()) == 4
        for server, is_large in done.items():
            tier, shares = ("large", 170) if is_large else ("small", 10)
            self.check(server, tier, weight=shares, shares=shares)
        assert self.tree.used()["one"][SHARES] == 720


class TestOversold(TierChanges):
    """Placement grants a claim, and then has allocated more than there is."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.boot_on("one", self.flavors["bronze"])
        grant = tier_changes.write

        def grant_too_much(*args: Any) -> str:
            answer = grant(*args)
            url = f"/resource_providers/{self.compute_rp_uuids['one']}/inventories"
            body = self.placement.get(url).body
            body["inventories"][SHARES]["total"] = 150  # 200 are allocated
            assert self.placement.put(url, body).status == 200
            return answer

        self.useFixture(fixtures.MockPatch("cpu_tiers.oversold.LONGEST_PAUSE", 0.01))
        self.useFixture(fixtures.MockPatchObject(tier_changes, "write", grant_too_much))

    def test_without_the_guard_the_claim_stays(self) -> None:
        self.resize(self.server, "gold")
        self.check(self.server, "gold", weight=200, shares=200)

    def test_with_the_guard_the_claim_is_given_back(self) -> None:
        self.configure(give_back_oversold_claims=True)
        with pytest.raises(OpenStackApiException, match="409"):
            self.resize(self.server, "gold")
        self.check(self.server, "bronze", weight=20, shares=20)


class TestSecondCell(TierChanges):
    NUMBER_OF_CELLS = 2

    def start_hosts(self) -> None:
        self.start_compute("one", cell_name="cell2")

    def test_a_change_and_a_report(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        self.resize(server, "gold")
        with nova_context.target_cell(
            nova_context.get_admin_context(), self.cell_mappings["cell2"]
        ) as context:
            wait_until(
                lambda: PENDING not in Instance.get_by_uuid(context, server).system_metadata
            )
        assert self.domain_shares(server, "one") == "200"
        assert self.shares_of(server) == 200
        self.revert(server)
        assert self.domain_shares(server, "one") == "20"
        assert self.shares_of(server) == 20
