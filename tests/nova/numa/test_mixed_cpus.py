"""Shared and dedicated vCPUs by amounts, which Nova alone refuses, in all its services.

The guest is the spec's: 8 vCPUs on two nodes, 3 VCPU and 5 PCPU, dealt VVPP and VPPP. So vCPUs
0, 1 and 4 are shared. A host has CPUs 0-6 in one cell and 7-13 in the other; 0, 1, 7 and 8 are
shared.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import fixtures
import pytest
import requests
from lxml import etree
from nova import context, objects
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import MULTIPLIER, SHARES, Computes
from tests.nova.kinds import NODES_OF_SEVEN

AMOUNTS = {"hw:numa_nodes": "2", "resources:VCPU": "3", "resources:PCPU": "5"}
ISOLATED = {**AMOUNTS, "resources:PCPU": "6", "hw:cpu_emulator_threads": "isolate"}
DEDICATED = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated"}
MASK = {"hw:numa_nodes": "2", "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "2-3,5-7"}
FLOATING = {0: "0-1", 1: "0-1", 4: "7-8"}
OTHER_IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"


class MixedCpus(Computes):
    """Two hosts; the flavors are the spec's guest, asked for in several ways."""

    microversion = "latest"
    kind = NODES_OF_SEVEN
    extends_cpu_policies = True

    def setUp(self) -> None:
        super().setUp()
        self.flavors: dict[str, str] = {}
        for name in ("one", "two"):
            self.start_host(name)

    def of(self, specs: Mapping[str, str]) -> str:
        """Make a flavor of 8 vCPUs, unless there is one; return its id."""
        name = " ".join(f"{key}={value}" for key, value in specs.items())
        if name not in self.flavors:
            self.flavors[name] = self.flavor(name, specs, vcpus=8)
        return self.flavors[name]

    def boot_of(self, specs: Mapping[str, str], **values: Any) -> dict[str, Any]:
        return self.boot(self.of(specs), host="one", **values)

    def cells(self, server: dict[str, Any]) -> list[Any]:
        admin = context.get_admin_context()
        topology = objects.InstanceNUMATopology.get_by_instance_uuid(admin, server["id"])
        cells: list[Any] = topology.cells
        return cells

    def cputune(self, server: dict[str, Any]) -> Any:
        """Return ``<cputune>`` of a guest, as libvirt has it; Nova's fake may add a part of it."""
        connection = self.computes[self.host_of(server)].driver._host.get_connection()
        domain = etree.fromstring(connection.lookupByUUIDString(server["id"]).XMLDesc(0))
        return domain.findall("cputune")[-1]

    def pins(self, server: dict[str, Any]) -> dict[int, str]:
        found = self.cputune(server).findall("vcpupin")
        return {int(pin.get("vcpu")): pin.get("cpuset") for pin in found}

    def check(
        self,
        server: dict[str, Any],
        host: str,
        *,
        shares: int | None = None,
        pcpu: int = 5,
    ) -> None:
        """Have the guest of the spec on a host: claimed, pinned and floating."""
        claimed = {"VCPU": 3, "PCPU": pcpu, "MEMORY_MB": 512}
        assert self.host_of(server) == host
        assert self.held(server["id"])[host] == claimed | ({SHARES: shares} if shares else {})
        first, second = self.cells(server)
        assert (first.cpuset, first.pcpuset) == ({0, 1}, {2, 3})
        assert (second.cpuset, second.pcpuset) == ({4}, {5, 6, 7})
        assert {first.cpu_policy, second.cpu_policy} == {"mixed"}
        pinned = {**first.cpu_pinning, **second.cpu_pinning}
        assert pinned.keys() == {2, 3, 5, 6, 7}
        assert set(first.cpu_pinning.values()) <= set(range(2, 7))
        assert set(second.cpu_pinning.values()) <= set(range(9, 14))
        assert self.pins(server) == FLOATING | {vcpu: str(cpu) for vcpu, cpu in pinned.items()}


class TestBoot(MixedCpus):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def test_amounts_are_dealt_to_the_nodes(self) -> None:
        server = self.boot_of(AMOUNTS)
        self.check(server, "one")
        assert [cell.cpuset_reserved for cell in self.cells(server)] == [None, None]

    def test_a_realtime_mask_without_realtime_vcpus(self) -> None:
        specs = {"hw:numa_nodes": "2", "hw:cpu_policy": "mixed", "hw:cpu_realtime_mask": "2-3,5-7"}
        server = self.boot_of(specs)
        self.check(server, "one")
        assert self.cputune(server).find("vcpusched") is None

    def test_as_by_novas_own_mask(self) -> None:
        ours, novas = self.boot_of(AMOUNTS), self.boot(self.of(MASK), host="two")
        self.check(novas, "two")
        assert self.pins(ours) == self.pins(novas)
        for one, other in zip(self.cells(ours), self.cells(novas), strict=True):
            assert one.obj_to_primitive() == other.obj_to_primitive()

    def test_isolated_emulator_threads_by_the_key_of_the_spec(self) -> None:
        server = self.boot_of(ISOLATED)
        self.check(server, "one", pcpu=6)
        first, second = self.cells(server)
        (kept,) = first.cpuset_reserved
        assert kept in set(range(2, 7)) - set(first.cpu_pinning.values())
        assert second.cpuset_reserved is None
        assert self.cputune(server).find("emulatorpin").get("cpuset") == str(kept)

    def test_the_key_of_the_spec_on_a_dedicated_server(self) -> None:
        server = self.boot_of({**DEDICATED, "hw:cpu_emulator_threads": "isolate"})
        assert self.held(server["id"]) == {"one": {"PCPU": 9, "MEMORY_MB": 512}}
        assert len(self.cells(server)[0].cpuset_reserved) == 1

    def test_emulator_threads_on_shared_cpus(self) -> None:
        server = self.boot_of({**AMOUNTS, "hw:cpu_emulator_threads": "share"})
        self.check(server, "one")
        assert self.cputune(server).find("emulatorpin").get("cpuset") == "0-1,7-8"

    def test_realtime_vcpus_among_the_dedicated_vcpus(self) -> None:
        specs = {**AMOUNTS, "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "5-6"}
        server = self.boot_of(specs)
        self.check(server, "one")
        assert self.cputune(server).find("vcpusched").get("vcpus") == "5-6"

    def test_a_tier_claims_for_shared_vcpus_and_weighs_all(self) -> None:
        server = self.boot_of({**AMOUNTS, MULTIPLIER: "100"})
        self.check(server, "one", shares=300)  # 100 x 3
        assert self.domain_shares(server["id"], "one") == "800"  # 100 x 8

    def test_no_more_than_a_host_has(self) -> None:
        self.flags(cores=-1, group="quota")
        for _ in range(2):  # 10 dedicated CPUs
            self.boot_of(AMOUNTS)
        failed = self.boot(self.of(AMOUNTS), host="one", state="ERROR")
        assert "No valid host was found" in self.fault_of(failed)

    def test_metadata(self) -> None:
        server = self.boot_of(AMOUNTS)
        url = self.useFixture(nova_fixtures.OSMetadataServer()).md_url
        found = "nova.network.neutron.API.get_fixed_ip_by_address"
        self.useFixture(fixtures.MockPatch(found, return_value={"instance_uuid": server["id"]}))
        answer = requests.get(f"{url}openstack/latest/meta_data.json", timeout=10)
        assert answer.json()["dedicated_cpus"] == [2, 3, 5, 6, 7]


class TestNumaNodes(MixedCpus):
    """All 14 CPUs of a host are shared, since a cell of 6 vCPUs needs a host cell of 6 CPUs."""

    kind = replace(NODES_OF_SEVEN, options={"compute": {"cpu_shared_set": "0-13"}})

    def test_numa_nodes_by_cpus_only(self) -> None:
        nodes = {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0,1", "hw:numa_cpus.1": "2,3,4,5,6,7"}
        server = self.boot_of(nodes)
        first, second = self.cells(server)
        assert (first.cpuset, first.memory) == ({0, 1}, 256)
        assert (second.cpuset, second.memory) == ({2, 3, 4, 5, 6, 7}, 256)
        self._migrate_server(server)
        assert self.host_of(server) == "two"


class TestRefused(MixedCpus):
    def refused(self, specs: Mapping[str, str], **values: Any) -> str:
        """Boot in vain; return what the user sees of it."""
        self.api.microversion = "2.85"  # what 2.86 would not let into a flavor
        flavor = self.of(specs)
        self.api.microversion = "latest"
        return self.bad_request(lambda: self.boot(flavor, **values))

    def bad_request(self, ask: Any) -> str:
        with pytest.raises(OpenStackApiException) as caught:
            ask()
        assert caught.value.response.status_code == 400
        message: str = caught.value.response.json()["badRequest"]["message"]
        return message

    def image(self, policy: str) -> str:
        """Make an image that asks for a CPU policy; return its id."""
        found = self.glance.show(None, OTHER_IMAGE)
        del found["id"]
        found = {**found, "name": policy, "properties": {"hw_cpu_policy": policy}}
        image: str = self.glance.create(None, found)["id"]
        return image

    def test_amounts_that_do_not_add_up(self) -> None:
        says = self.refused({**AMOUNTS, "resources:PCPU": "4"})
        assert says.endswith("3 + 4 CPUs; the amounts must add up to 8, the CPUs of the server")
        says = self.refused({**ISOLATED, "resources:PCPU": "5"})
        assert says.endswith("3 + 5 CPUs; the amounts must add up to 9, the CPUs of the server")

    def test_amounts_beside_a_policy_or_a_mask(self) -> None:
        assert "remove either the policy or the amount" in self.refused({**AMOUNTS, **DEDICATED})
        mask = {**AMOUNTS, "hw:cpu_dedicated_mask": "0"}
        assert "a mask needs hw:cpu_policy mixed" in self.refused(mask)

    def test_realtime_vcpus_that_are_shared(self) -> None:
        specs = {**AMOUNTS, "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "4"}
        assert "every real-time vCPU must be dedicated" in self.refused(specs)

    def test_two_keys_for_emulator_threads_that_differ(self) -> None:
        both = {"hw:cpu_emulator_threads": "share", "hw:emulator_threads_policy": "isolate"}
        assert self.refused({**DEDICATED, **both}).endswith(
            "extra specs hw:emulator_threads_policy and hw:cpu_emulator_threads: 'isolate' and "
            "'share'; both keys set the same policy: remove one of them"
        )
        unknown = {**DEDICATED, "hw:cpu_emulator_threads": "nowhere"}
        assert "give one of share, isolate" in self.refused(unknown)

    def test_flavor_mixed_and_image_shared(self) -> None:
        shared = self.image("shared")
        conflict = (
            "the flavor has hw:cpu_policy=mixed, the image hw_cpu_policy=shared; the image may "
            "not ask for another policy than the flavor"
        )
        assert self.refused(MASK, image_uuid=shared).endswith(conflict)
        server = self.boot_of(MASK)
        rebuild = {"rebuild": {"imageRef": shared}}
        says = self.bad_request(lambda: self.api.post_server_action(server["id"], rebuild))
        assert says.endswith(conflict)
        server = self.boot(self.flavor("small"), image_uuid=shared)
        resize = {"resize": {"flavorRef": self.of(MASK)}}
        says = self.bad_request(lambda: self.api.post_server_action(server["id"], resize))
        assert says.endswith(conflict)

    def test_a_resize_to_amounts_that_make_no_sense(self) -> None:
        server = self.boot_of(AMOUNTS)
        resize = {"resize": {"flavorRef": self.of({**AMOUNTS, "resources:PCPU": "1"})}}
        says = self.bad_request(lambda: self.api.post_server_action(server["id"], resize))
        assert "must add up to 8" in says

    def test_computes_older_than_mixed(self) -> None:
        oldest = "nova.objects.service.get_minimum_version_all_cells"
        flavor = self.of(AMOUNTS)
        with mock.patch(oldest, return_value=51), pytest.raises(OpenStackApiException) as caught:
            self.boot(flavor)
        assert caught.value.response.status_code == 409


class TestMoves(MixedCpus):
    def test_resize_from_dedicated_and_to_shared(self) -> None:
        server = self.boot_of(DEDICATED)
        self._resize_server(server, self.of(AMOUNTS))
        self.check(server, "two")
        self._confirm_resize(server)
        self.check(server, "two")
        self._resize_server(server, self.flavor("shared", vcpus=4))
        self._confirm_resize(server)
        assert self.held(server["id"]) == {"one": {"VCPU": 4, "MEMORY_MB": 512}}

    def test_resize_reverted(self) -> None:
        server = self.boot_of(AMOUNTS)
        before = self.pins(server)
        self._resize_server(server, self.of(DEDICATED))
        assert self.held(server["id"]) == {"two": {"PCPU": 8, "MEMORY_MB": 512}}
        self._revert_resize(server)
        self.check(server, "one")
        assert self.pins(server) == before

    def test_cold_migration(self) -> None:
        server = self.boot_of({**AMOUNTS, MULTIPLIER: "2.5"})
        self._migrate_server(server)
        self._confirm_resize(server)
        self.check(server, "two", shares=8)  # 2.5 x 3 = 7.5

    def test_rebuild(self) -> None:
        server = self.boot_of(ISOLATED)
        self._rebuild_server(server, OTHER_IMAGE)
        self.check(server, "one", pcpu=6)

    def test_shelve_and_unshelve(self) -> None:
        server = self.boot_of(AMOUNTS)
        self._shelve_server(server)
        assert self.held(server["id"]) == {}
        self._unshelve_server(server)
        self.check(server, self.host_of(server))

    def test_evacuate(self) -> None:
        server = self.boot_of(AMOUNTS)
        self.go_down("one")
        self._evacuate_server(server, expected_host="two")
        self.check(server, "two")


class TestLiveMigration(LibvirtMigrationMixin, MixedCpus):
    def test_live_migrations_to_the_destination_and_back(self) -> None:
        self.server = self.boot_of(ISOLATED)
        for source, destination in (("one", "two"), ("two", "one")):
            self.src, self.dest = self.computes[source], self.computes[destination]
            self._live_migrate(self.server)
            self.check(self.server, destination, pcpu=6)
