"""A resize between two tiers, carried out on the running server."""

from datetime import timedelta
from typing import Any, ClassVar

import fixtures
import pytest
from keystoneauth1.exceptions import ClientException
from nova import context as nova_context
from nova.conductor.rpcapi import ComputeTaskAPI
from nova.scheduler.client.report import SchedulerReportClient
from nova.tests.functional.api.client import OpenStackApiException
from oslo_utils import fixture as timeutils_fixture
from oslo_utils import timeutils

from cpu_tiers.conf import libvirt, quota
from cpu_tiers.model.names import TIER_CHANGE_TRAIT
from cpu_tiers.nova import options, tier_changes
from cpu_tiers.nova.api.features import API
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES
from tests.nova.tier_changes import TierChanges
from tests.nova.unified_limits import OF_NOVA, limit

LIVE = ("live_tier_change", "Success", None)


class TestTierChange(TierChanges):
    """Without room, nova-api refuses."""

    def test_up_and_confirm(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        connection = self.computes["one"].driver._host.get_connection()
        domain = connection.lookupByUUIDString(server)
        self.check(server, "bronze", weight=20, shares=20)
        self.resize(server, "gold")
        self.check(server, "gold", weight=200, shares=200)
        assert self.events_of(server) == [LIVE]
        assert '<nova:flavor name="gold"' in self.weights.metadata[server]
        self.report(server)
        self.check(server, "gold", weight=200, shares=200)
        self.confirm(server)
        self.check(server, "gold", weight=200, shares=200)
        assert self.held(self.migration_of(server)) == {}
        assert connection.lookupByUUIDString(server) is domain
        assert domain.info()[0] == 1  # running

    def test_down_keeps_the_difference_until_the_confirm(self) -> None:
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "silver")
        self.check(server, "silver", weight=100, shares=100)
        assert self.held(self.migration_of(server)) == {"one": {SHARES: 100}}  # 200 - 100
        self.confirm(server)
        self.check(server, "silver", weight=100, shares=100)
        assert self.held(self.migration_of(server)) == {}

    def test_revert(self) -> None:
        for old, new, shares in (("bronze", "gold", 20), ("gold", "bronze", 200)):
            server = self.boot_on("one", self.flavors[old])
            self.resize(server, new)
            # Others take all that is left: what the revert needs is kept.
            left = 800 - self.tree.used()["one"][SHARES]
            rest = self.boot_on("one", self.flavor(f"rest of {old}", {PLAIN: str(left)}))
            self.revert(server)
            self.check(server, old, weight=shares, shares=shares)
            assert self.held(self.migration_of(server)) == {}
            assert self.events_of(server) == [LIVE]
            for each in (server, rest):
                self._delete_server({"id": each})

    def test_no_tier_to_tier_and_back(self) -> None:
        options.register(libvirt)
        self.flags(least_weight_without_tier=True, group="libvirt")
        server = self.boot_on("one", self.flavors["none"])
        self.check(server, "none", weight=2, shares=0)
        self.resize(server, "silver")
        self.check(server, "silver", weight=100, shares=100)
        self.confirm(server)
        self.resize(server, "none")
        self.check(server, "none", weight=2, shares=0)
        self.confirm(server)
        assert self.shares_of(server) == 0

    def test_the_other_extra_specs_of_a_tier(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        for specs, weight, shares in (
            ({PLAIN: "30"}, 30, 30),
            ({PLAIN: "40", f"resources:{SHARES}": "60"}, 40, 60),
        ):
            self.resize(server, self.flavor(f"plain {weight}", specs, vcpus=2))
            self.check(server, f"plain {weight}", weight=weight, shares=shares)
            self.confirm(server)

    def test_no_room(self) -> None:
        """The user learns what is lacking, and the server is as before."""
        server = self.boot_on("one", self.flavors["bronze"])
        self.boot_on("one", self.flavor("rest", {PLAIN: "601"}))  # 800 - 20 - 601 = 179
        with pytest.raises(
            OpenStackApiException, match=r"(?s)409.*no room for 180 more"
        ) as caught:
            self.resize(server, "gold")
        assert SHARES in str(caught.value)
        self._wait_for_state_change({"id": server}, "ACTIVE")
        self.check(server, "bronze", weight=20, shares=20)
        ((event, result, details),) = self.events_of(server)
        assert (event, result) == ("no_live_tier_change", "Error")
        assert details == f"its host has no room for 180 more {SHARES}"
        self.resize(server, "silver")  # 80 of 179
        self.check(server, "silver", weight=100, shares=100)

    def test_a_faulty_tier_is_refused(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        both = self.flavor("both", {MULTIPLIER: "1", PLAIN: "2"}, vcpus=2)
        with pytest.raises(OpenStackApiException, match=r"(?s)400.*flavor both"):
            self.resize(server, both)
        self.check(server, "bronze", weight=20, shares=20)
        self.resize(server, "gold")

    def test_a_faulty_flavor_is_refused_once(self) -> None:
        """With ``refuse_faulty_flavors``, before a change begins."""
        self.flags(refuse_faulty_flavors=True, group="api")
        API.start()
        server = self.boot_on("one", self.flavors["bronze"])
        both = self.flavor("both", {MULTIPLIER: "1", PLAIN: "2"}, vcpus=2)
        with pytest.raises(OpenStackApiException, match=r"(?s)400.*flavor both"):
            self.resize(server, both)
        assert self.instance(server).task_state is None
        self.check(server, "bronze", weight=20, shares=20)

    def of_disk(self, name: str, multiplier: str) -> str:
        """Make a flavor with a disk: Nova gives users no others; return its id."""
        return self.flavor(name, {MULTIPLIER: multiplier}, vcpus=2, disk_gb=1)

    def test_a_flavor_of_other_projects(self) -> None:
        """The user gets the tier with the access to its flavor, and not before."""
        server = self.boot_on("one", self.of_disk("small", "10"))
        specs = {"extra_specs": {MULTIPLIER: "100"}}
        body = {"name": "own", "ram": 512, "vcpus": 2, "disk": 1, "id": "own"}
        private = {"flavor": {**body, "os-flavor-access:is_public": False}}
        self.admin_api.api_post("/flavors", private)
        self.admin_api.api_post("/flavors/own/os-extra_specs", specs)
        user = self.api_fixture.api
        resize = {"resize": {"flavorRef": "own"}}
        with pytest.raises(OpenStackApiException, match="Flavor own could not be found"):
            user.post_server_action(server, resize)
        self.check(server, "small", weight=20, shares=20)
        access = {"addTenantAccess": {"tenant": self.api_fixture.project_id}}
        self.admin_api.api_post("/flavors/own/action", access)
        user.post_server_action(server, resize)
        self.check(server, "own", weight=200, shares=200)

    def test_a_locked_server(self) -> None:
        server = self.boot_on("one", self.of_disk("small", "10"))
        user = self.api_fixture.api
        resize = {"resize": {"flavorRef": self.of_disk("large", "100")}}
        self.api.post_server_action(server, {"lock": {}})
        with pytest.raises(OpenStackApiException, match="409"):
            user.post_server_action(server, resize)
        self.check(server, "small", weight=20, shares=20)
        self.api.post_server_action(server, {"unlock": None})
        user.post_server_action(server, resize)
        self.check(server, "large", weight=200, shares=200)

    def test_the_limit_of_a_project_counts_as_for_each_resize(self) -> None:
        """Nova adds the new flavor to what is in use: 20 + 200 > 219, and 20 + 100 fits.

        So a lower tier is refused, too, where the limit has no room for both tiers.
        """
        options.register(quota)
        self.flags(driver=quota.UNIFIED_LIMITS, count_vcpu_shares=True, group="quota")
        limits = {**OF_NOVA, f"class:{SHARES}": 219}
        limit(self, limits)
        API.start()
        server = self.boot_on("one", self.flavors["bronze"])
        numbers = f"class:{SHARES} is over limit of 219 due to current usage 20 and delta 200"
        with pytest.raises(OpenStackApiException, match=f"(?s)403.*{numbers}"):
            self.resize(server, "gold")
        self.check(server, "bronze", weight=20, shares=20)
        self.resize(server, "silver")
        self.check(server, "silver", weight=100, shares=100)
        self.confirm(server)
        limits[f"class:{SHARES}"] = 119
        numbers = f"class:{SHARES} is over limit of 119 due to current usage 100 and delta 20"
        with pytest.raises(OpenStackApiException, match=f"(?s)403.*{numbers}"):
            self.resize(server, "bronze")
        self.check(server, "silver", weight=100, shares=100)

    def test_what_else_differs_is_novas(self) -> None:
        """So is a server that is shut off: no power-off is in question."""
        server = self.boot_on("one", self.flavors["bronze"])
        gold = {MULTIPLIER: "100"}
        for number, flavor in enumerate(
            (
                self.flavor("larger", gold, vcpus=3),
                self.flavor("with a trait", {**gold, "trait:COMPUTE_NODE": "required"}, vcpus=2),
            )
        ):
            self.resize(server, flavor)
            assert self.weights.set == []
            assert self.host_of({"id": server}) == ("two", "one")[number]
            self.confirm(server)
        self.api.post_server_action(server, {"os-stop": None})
        self._wait_for_state_change({"id": server}, "SHUTOFF")
        self.resize(server, "gold")
        assert self.weights.set == []

    def test_the_states_in_which_nova_refuses(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        states = ("pause", "unpause", "PAUSED"), ("suspend", "resume", "SUSPENDED")
        for begin, end, state in states:
            self.api.post_server_action(server, {begin: {}})
            self._wait_for_state_change({"id": server}, state)
            with pytest.raises(OpenStackApiException, match="409"):
                self.resize(server, "gold")
            self.api.post_server_action(server, {end: {}})
            self._wait_for_state_change({"id": server}, "ACTIVE")
        instance = self.instance(server)
        for task in ("migrating", "image_snapshot", "resize_prep"):
            instance.task_state = task
            instance.save()
            with pytest.raises(OpenStackApiException, match="409"):
                self.resize(server, "gold")
        instance.task_state = None
        instance.save()
        self.check(server, "bronze", weight=20, shares=20)

    def test_resize_confirm_window(self) -> None:
        """Nova confirms by itself, with the migration record as we have saved it."""
        server = self.boot_on("one", self.flavors["bronze"])
        self.resize(server, "gold")
        self.flags(resize_confirm_window=20)
        for seconds, state in ((10, "VERIFY_RESIZE"), (40, "ACTIVE")):
            later = timeutils.utcnow() + timedelta(seconds=seconds)
            context = nova_context.get_admin_context()
            with self.on_host(server), timeutils_fixture.TimeFixture(later):
                self.computes["one"].manager._poll_unconfirmed_resizes(context)
                self._wait_for_state_change({"id": server}, state)
        self.check(server, "gold", weight=200, shares=200)

    def test_delete_before_the_confirm(self) -> None:
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        migration = self.migration_of(server)
        with self.on_host(server):
            self._delete_server({"id": server})
        assert self.held(server) == self.held(migration) == {}

    def test_moves_afterwards(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        self.resize(server, "gold")
        self.confirm(server)
        with self.on_host(server):
            self._reboot_server({"id": server}, hard=True)
        self.check(server, "gold", weight=200, shares=200)
        self._migrate_server({"id": server})
        self.confirm(server)
        assert self.host_of({"id": server}) == "two"
        self.check(server, "gold", weight=200, shares=200)
        self.resize(server, "silver")  # and back by the same way, on the other host
        self.confirm(server)
        self.check(server, "silver", weight=100, shares=100)

    def test_notifications(self) -> None:
        """As of each resize: a bill of the time before, and what begins and ends."""
        server = self.boot_on("one", self.flavors["bronze"])
        self.notifier.reset()
        self.resize(server, "gold")
        self.check(server, "gold", weight=200, shares=200)
        assert self.notified() == [
            ("exists", "bronze"),
            ("resize.start", "gold"),
            ("resize.end", "gold"),
            ("resize_finish.start", "gold"),
            ("resize_finish.end", "gold"),
        ]
        self.notifier.reset()
        self.revert(server)
        self.check(server, "bronze", weight=20, shares=20)
        assert self.notified() == [
            ("exists", "gold"),
            ("resize_revert.start", "bronze"),
            ("resize_revert.end", "bronze"),
        ]

    def notified(self) -> list[tuple[str, str]]:
        """Return the names and flavors of the versioned notifications, without updates."""
        sent = [
            (each["event_type"].partition(".")[2], each["payload"]["nova_object.data"])
            for each in self.notifier.versioned_notifications
        ]
        flavors = [(name, data["flavor"]["nova_object.data"]["name"]) for name, data in sent]
        return [each for each in flavors if each[0] != "update"]

    def test_what_clients_wait_for(self) -> None:
        """Terraform's provider accepts only RESIZE before VERIFY_RESIZE, and then only ACTIVE.

        Heat, gophercloud and openstackclient accept that, too.
        """
        server = self.boot_on("one", self.flavors["bronze"])
        for tier, end, between in (
            ("gold", "confirmResize", "VERIFY_RESIZE"),
            ("silver", "revertResize", "REVERT_RESIZE"),
        ):
            resize = {"resize": {"flavorRef": self.flavors[tier]}}
            self.api.post_server_action(server, resize)
            assert self.api.get_server(server)["status"] == "VERIFY_RESIZE"
            seen = set[str]()
            with self.on_host(server):
                self.api.post_server_action(server, {end: {}})
                while seen <= {between}:
                    seen.add(self.api.get_server(server)["status"])
            assert seen - {between} == {"ACTIVE"}
            self.check(server, "gold", weight=200, shares=200)

    def test_placement_does_not_answer(self) -> None:
        """Whether or not Placement has granted the claim, the host makes it right."""
        server = self.boot_on("one", self.flavors["bronze"])
        post = SchedulerReportClient.post

        def lose_answer(*args: Any, **kwargs: Any) -> Any:
            post(*args, **kwargs)
            raise ClientException("no route to placement")

        with fixtures.MockPatchObject(SchedulerReportClient, "post", lose_answer):
            with pytest.raises(OpenStackApiException, match=r"(?s)409.*does not answer"):
                self.resize(server, "gold")
            assert self.shares_of(server) == 200
        self.report(server)
        self.check(server, "bronze", weight=20, shares=20)

    def test_a_server_that_is_deleted_meanwhile(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        root_of = tier_changes.root_of

        def delete(instance: Any) -> str:
            root = root_of(instance)
            with self.on_host(server):
                self._delete_server({"id": server})
            return root

        with (
            fixtures.MockPatchObject(tier_changes, "root_of", delete),
            pytest.raises(OpenStackApiException, match="409"),
        ):
            self.resize(server, "gold")
        assert self.held(server) == {}


class TestNovaResizes(TierChanges):
    """Without room, Nova resizes the server, with a power-off."""

    choice: ClassVar[str] = "resize"

    def test_no_room(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        self.boot_on("one", self.flavor("rest", {PLAIN: "601"}))
        self.resize(server, "gold")
        assert self.host_of({"id": server}) == "two"
        assert self.weights.set == []
        self.confirm(server)
        self.check(server, "gold", weight=200, shares=200)
        server = self.boot_on("one", self.flavors["bronze"])
        self.resize(server, "gold")
        names = {event: details for event, _, details in self.events_of(server)}
        reason = f"Nova resizes the server: its host has no room for 180 more {SHARES}"
        assert names["no_live_tier_change"] == reason
        assert "live_tier_change" not in names

    def test_a_host_that_does_not_hear(self) -> None:
        """Nova's own driver, an older one, or one with the option off does not have the trait."""
        server = self.boot_on("one", self.flavors["bronze"])
        url = f"/resource_providers/{self.compute_rp_uuids['one']}/traits"
        traits = self.placement.get(url, version="1.6").body
        traits["traits"].remove(TIER_CHANGE_TRAIT)
        self.placement.put(url, traits, version="1.6")
        self.resize(server, "gold")
        assert self.host_of({"id": server}) == "two"
        assert "its host does not have the trait" in str(self.events_of(server))


class TestOff(TierChanges):
    choice: ClassVar[str | None] = None

    def test_the_resize_is_novas(self) -> None:
        cast = self.useFixture(
            fixtures.MockPatchObject(ComputeTaskAPI, "migrate_server", autospec=True)
        )
        server = self.boot_on("one", self.flavors["bronze"])
        self.api.post_server_action(server, {"resize": {"flavorRef": self.flavors["gold"]}})
        cast.mock.assert_called_once()
        assert not self.is_pending(server)
