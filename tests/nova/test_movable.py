"""The tables of migration and evacuation beside Nova: what a plan says, Nova's services then do.

Each test reads the cloud as ``cpu-tiers plan`` does, and then has Nova do with each server what
the plan says that Nova does, and what the plan says that Nova refuses.
"""

from collections.abc import Mapping
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.tests.functional.api.client import OpenStackApiException

from tests.nova.cloud import MULTIPLIER
from tests.nova.planned import PlannedCloud

DEVICES: Mapping[str, Mapping[str, str]] = {
    "tpm": {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"},
    "encrypted": {"hw:mem_encryption": "true"},
    "accelerator": {"accel:device_profile": "profile"},
    "plain": {},
}


class Judged(PlannedCloud):
    """Asks a plan, and has Nova judge it."""

    def boot_small(self, name: str, host: str, **body: Any) -> str:
        server = self._build_server(
            name=name, flavor_id=self.small, networks="none", host=host, **body
        )
        uuid: str = self._wait_for_state_change(
            self.api.post_server({"server": server}), "ACTIVE"
        )["id"]
        self.uuids[name] = uuid
        return uuid

    def setUp(self) -> None:
        super().setUp()
        self.small = self.tier("small", "10", vcpus=1)

    def stored(self, uuid: str) -> objects.Instance:
        return objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), uuid, expected_attrs=["flavor", "system_metadata"]
        )

    def give_specs(self, uuid: str, specs: Mapping[str, str]) -> None:
        """Give the flavor that is embedded in a server extra specs, as if it had booted with them.

        nova-api judges a server by this flavor, and no fake of a device is needed.
        """
        instance = self.stored(uuid)
        instance.flavor.extra_specs = {**instance.flavor.extra_specs, **specs}
        instance.save()

    def who_stays(self, *hosts: str) -> set[str]:
        """Return the names of the servers that stay, by the plan that empties hosts."""
        answer = self.plan("drain", *hosts, "--cold", status=None)
        assert {each["name"] for each in answer["stay"]}.isdisjoint(
            move["name"] for move in answer["moves"]
        )
        return {each["name"] for each in answer["stay"]}

    def who_is_homeless(self) -> set[str]:
        return {each["name"] for each in self.plan("survive", status=None)["stay"]}

    def is_accepted(self, uuid: str, action: Mapping[str, Any]) -> bool:
        try:
            self.api.post_server_action(uuid, action)
        except OpenStackApiException as error:
            if error.response.status_code not in (400, 403, 409):
                raise
            return False
        return True

    def does_migrate(self, name: str, target: str) -> bool:
        """Have Nova migrate a server, cold if it is off; tell whether it then is on the target."""
        uuid = self.uuids[name]
        self.server = server = self.api.get_server(uuid)
        self.src, self.dest = self.computes[self.host_of(server)], self.computes[target]
        action: dict[str, Any] = {"os-migrateLive": {"host": target, "block_migration": "auto"}}
        if server["status"] == "SHUTOFF":
            action = {"migrate": {"host": target}}
        if not self.is_accepted(uuid, action):
            return False
        server = self._wait_for_server_parameter(server, {"OS-EXT-STS:task_state": None})
        return bool(self.host_of(server) == target)

    def does_evacuate(self, name: str) -> bool:
        """Have Nova evacuate a server of a host that is down; tell whether it left the host."""
        uuid = self.uuids[name]
        before = self.host_of(self.api.get_server(uuid))
        if not self.is_accepted(uuid, {"evacuate": {}}):
            return False
        server = self._wait_for_server_parameter({"id": uuid}, {"OS-EXT-STS:task_state": None})
        return bool(self.host_of(server) != before)


class TestStates(Judged):
    """Servers in each state that a test can make, on a host that is emptied or fails."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two")
        for name in ("active", "paused", "off", "suspended", "rescued", "broken", "shelved"):
            self.boot_small(name, "one")
        act = {
            "paused": ({"pause": None}, "PAUSED"),
            "off": ({"os-stop": None}, "SHUTOFF"),
            "broken": ({"os-resetState": {"state": "error"}}, "ERROR"),
        }
        for name, (action, state) in act.items():
            self.api.post_server_action(self.uuids[name], action)
            self._wait_for_state_change({"id": self.uuids[name]}, state)
        for name in ("suspended", "rescued", "shelved"):  # of which the fake libvirt lacks a part
            instance = self.stored(self.uuids[name])
            instance.vm_state = name
            instance.save()
        locked = self.boot_small("locked", "one")
        self.api.post_server_action(locked, {"lock": None})

    def test_migration(self) -> None:
        staying = self.who_stays("one")
        assert staying == {"suspended", "rescued", "broken", "shelved"}
        for name in self.uuids:
            assert self.does_migrate(name, "two") is (name not in staying), name

    def test_evacuation(self) -> None:
        homeless = self.who_is_homeless()
        assert homeless == {"paused", "suspended", "rescued", "shelved"}
        self.go_down("one")
        for name in self.uuids:
            assert self.does_evacuate(name) is (name not in homeless), name
        # What the reason of a server without a place says.
        self.api.post_server_action(self.uuids["paused"], {"os-resetState": {"state": "active"}})
        assert self.does_evacuate("paused")


class TestDevices(Judged):
    """Servers with devices, by the flavor that is embedded in them."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two")
        for name, specs in DEVICES.items():
            self.give_specs(self.boot_small(name, "one"), specs)
        self.give_specs(self.boot_small("off tpm", "one"), DEVICES["tpm"])
        self.api.post_server_action(self.uuids["off tpm"], {"os-stop": None})
        self._wait_for_state_change({"id": self.uuids["off tpm"]}, "SHUTOFF")

    def test_migration(self) -> None:
        staying = self.who_stays("one")
        assert {"tpm", "encrypted", "accelerator"} <= staying
        for name in ("tpm", "encrypted", "accelerator", "plain"):
            assert self.does_migrate(name, "two") is (name == "plain"), name

    def test_evacuation(self) -> None:
        answer = self.plan("survive", status=3)
        reasons = {each["name"]: each["why"] for each in answer["stay"]}
        assert "virtual TPM" in reasons["tpm"]
        assert "virtual TPM" in reasons["off tpm"]
        self.go_down("one")
        for name in ("tpm", "off tpm", "plain"):
            assert self.does_evacuate(name) is (name == "plain"), name


class TestGroups(Judged):
    """Members of affinity groups: alone, together, and on two hosts."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two", "three")

    def member(self, name: str, group: str, host: str) -> None:
        body = self._build_server(name=name, flavor_id=self.small, networks="none", host=host)
        request = {"server": body, "os:scheduler_hints": {"group": group}}
        server = self._wait_for_state_change(self.api.post_server(request), "ACTIVE")
        self.uuids[name] = server["id"]

    def group(self, policy: str) -> str:
        body = {"name": policy, "policy": policy}
        uuid: str = self.api.post_server_groups(body)["id"]
        return uuid

    def test_affinity(self) -> None:
        alone, pair = self.group("affinity"), self.group("affinity")
        self.member("alone", alone, "one")
        self.member("a", pair, "one")
        self.member("b", pair, "one")
        self.member("soft", self.group("soft-affinity"), "one")
        assert self.who_stays("one") == {"alone", "a", "b"}
        for name in ("alone", "a", "b", "soft"):
            assert self.does_migrate(name, "two") is (name == "soft"), name
        assert self.who_is_homeless() == {"alone", "a", "b"}
        self.go_down("one")
        for name in ("alone", "a", "b"):
            assert not self.does_evacuate(name), name


class TestZones(Judged):
    """Two hosts of a zone, and a third host outside."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two", "three")
        aggregate = self._create_aggregate("az1", metadata={"availability_zone": "az1"})
        for host in ("one", "two"):
            self._add_host_to_aggregate(aggregate, host)

    def test_pinned(self) -> None:
        self.boot_small("pinned", "", availability_zone="az1")
        self.boot_small("free", "one")
        (move,) = (
            each
            for each in self.plan("drain", "one", "two", status=None)["moves"]
            if each["name"] == "free"
        )
        assert move["to"] == "three"
        assert self.who_stays("one", "two") == {"pinned"}
        assert not self.does_migrate("pinned", "three")
        assert self.does_migrate("free", "three")


class TestAggregates(Judged):
    """nova-scheduler has filters that read the metadata of aggregates and hints."""

    FILTERS = (
        "AggregateInstanceExtraSpecsFilter",
        "AggregateMultiTenancyIsolation",
        "DifferentHostFilter",
        "SameHostFilter",
    )
    options = f"enabled_filters = ComputeFilter,{','.join(FILTERS)}\n"

    def setUp(self) -> None:
        super().setUp()
        self.ADDITIONAL_FILTERS = list(self.FILTERS)
        self.configure(enabled_filters=["ComputeFilter", *self.FILTERS])
        self.restart_scheduler()
        self.start("one", "two", "three")
        for host, ssd in (("one", "yes"), ("two", "no"), ("three", "yes")):
            metadata = {"ssd": ssd} if host != "two" else {"ssd": ssd, "filter_tenant_id": "x"}
            aggregate = self._create_aggregate(host, metadata=metadata)
            self._add_host_to_aggregate(aggregate, host)
        specs = {MULTIPLIER: "10", "aggregate_instance_extra_specs:ssd": "yes"}
        self.small = self.flavor("ssd", specs, vcpus=1)

    def test_metadata(self) -> None:
        self.boot_small("a", "one")
        (move,) = self.plan("drain", "one")["moves"]
        assert move["to"] == "three"
        assert not self.does_migrate("a", "two")
        assert self.who_stays("one", "three") == {"a"}
        assert self.does_migrate("a", "three")


class TestUnconfirmed(Judged):
    """The target of a cold migration fails before anybody has confirmed it."""

    def test_the_source_confirms_and_nova_evacuates(self) -> None:
        self.start("one", "two", "three")
        uuid = self.boot_small("a", "one")
        self.api.post_server_action(uuid, {"migrate": {"host": "two"}})
        self._wait_for_state_change({"id": uuid}, "VERIFY_RESIZE")
        assert self.who_is_homeless() == set()
        self.go_down("two")
        assert not self.does_evacuate("a")
        self.api.post_server_action(uuid, {"confirmResize": None}, check_response_status=[204])
        self._wait_for_state_change({"id": uuid}, "ACTIVE")
        assert self.does_evacuate("a")
