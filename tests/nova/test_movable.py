"""The tables of migration and evacuation beside Nova: what a plan says, Nova's services then do.

Each test reads the cloud as ``cpu-tiers plan`` does, and then has Nova do with each server what
the plan says that Nova does, and what the plan says that Nova refuses.
"""

from collections.abc import Mapping
from dataclasses import replace

from tests.nova.cloud import MULTIPLIER, STOCK
from tests.nova.planned import PlannedCloud

DEVICES: Mapping[str, Mapping[str, str]] = {
    "tpm": {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"},
    "encrypted": {"hw:mem_encryption": "true"},
    "accelerator": {"accel:device_profile": "profile"},
    "plain": {},
}


FILTERS = (
    "AggregateInstanceExtraSpecsFilter",
    "AggregateMultiTenancyIsolation",
    "DifferentHostFilter",
    "SameHostFilter",
)


class TestStates(PlannedCloud):
    """Servers in each state that a test can make, on a host that is emptied or fails."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two")
        for name in ("active", "paused", "off", "suspended", "rescued", "broken", "shelved"):
            self.boot_small(name, "one")
        for name, action, state in (
            ("paused", {"pause": None}, "PAUSED"),
            ("off", {"os-stop": None}, "SHUTOFF"),
        ):
            self.api.post_server_action(self.uuids[name], action)
            self._wait_for_state_change({"id": self.uuids[name]}, state)
        self.api.post_server_action(self.uuids["broken"], {"os-resetState": {"state": "error"}})
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


class TestDevices(PlannedCloud):
    """Servers with devices, by the flavor that is embedded in them."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two")
        for name, specs in DEVICES.items():
            self.give_specs(self.boot_small(name, "one"), specs)
        encrypted = self.stored(self.uuids["encrypted"])
        encrypted.system_metadata["image_hw_firmware_type"] = "uefi"
        encrypted.system_metadata["image_hw_machine_type"] = "q35"
        encrypted.save()
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


class TestGroups(PlannedCloud):
    """Members of affinity groups: alone, together, and of a soft group."""

    weighers = ("nova.scheduler.weights.all_weighers",)

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


class TestZones(PlannedCloud):
    """Two hosts of a zone, and a third host outside."""

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two", "three")
        aggregate = self._create_aggregate("az1", "az1")
        for host in ("one", "two"):
            self.act(aggregate, add_host={"host": host})

    def test_pinned(self) -> None:
        self.boot_small("pinned", "one", az="az1")
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


class TestAggregates(PlannedCloud):
    """nova-scheduler has filters that read the metadata of aggregates and hints."""

    kind = replace(STOCK, filters=FILTERS)
    options = f"enabled_filters = ComputeFilter,{','.join(FILTERS)}\n"

    def setUp(self) -> None:
        super().setUp()
        self.start("one", "two", "three")
        for host, ssd in (("one", "yes"), ("two", "no"), ("three", "yes")):
            metadata = {"ssd": ssd} if host != "two" else {"ssd": ssd, "filter_tenant_id": "x"}
            aggregate = self._create_aggregate(host)
            self.act(aggregate, set_metadata={"metadata": metadata})
            self.act(aggregate, add_host={"host": host})
        specs = {MULTIPLIER: "10", "aggregate_instance_extra_specs:ssd": "yes"}
        self.small = self.flavor("ssd", specs, vcpus=1)

    def test_metadata(self) -> None:
        self.boot_small("a", "one")
        (move,) = self.plan("drain", "one")["moves"]
        assert move["to"] == "three"
        assert not self.does_migrate("a", "two")
        assert self.who_stays("one", "three") == {"a"}
        assert self.does_migrate("a", "three")


class TestUnconfirmed(PlannedCloud):
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
