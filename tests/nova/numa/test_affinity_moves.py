"""Moves of servers with a PCI device and a NUMA affinity policy.

nova-compute accepts the NUMA node that nova-scheduler has chosen by the policy, also where Nova's
``_move_claim`` has lost the policy. On each host, the device is on node 0, and only node 1 has
free CPUs.
"""

import copy
import json
from collections.abc import Mapping
from types import MappingProxyType

from nova import context, objects
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.agreement import check_agreement
from tests.nova.numa.devices import VENDOR
from tests.nova.numa.pinning import IMAGE, PINNED, PINNING
from tests.nova.patience import wait_until

AFFINITY = "hw:pci_numa_affinity_policy"
ALIAS = {"pci_passthrough:alias": "card:1"}
PREFERRED = {AFFINITY: "preferred"}
OTHER_IMAGE = "6d7c4a3e-7a5f-4f6c-9a7e-0c3b7a1d5e11"
VARIANT = {"libvirt_version": 10_000_000, "qemu_version": 8_002_002}
"""Versions with which a guest with a PCI device may migrate live."""


class Cards(LibvirtMigrationMixin, Computes):
    """Two hosts with a card each."""

    kind = PINNING
    microversion = "latest"
    CAST_AS_CALL = False  # the refusal is the compute's, not an answer of nova-api
    device: Mapping[str, str] = MappingProxyType({})
    """What alias and host say of the card besides."""
    versions: Mapping[str, int] = MappingProxyType({})

    def setUp(self) -> None:
        super().setUp()
        card = {"vendor_id": VENDOR, "product_id": fakelibvirt.PCI_PROD_ID, **self.device}
        alias = json.dumps({**card, "name": "card"})
        self.flags(device_spec=[json.dumps(card)], alias=[alias], group="pci")
        self.full = self.flavor("full", PINNED, vcpus=4)
        for host in ("one", "two"):
            self.start(host)

    def start(self, host: str) -> None:
        """Start a host, and take the CPUs of node 0."""
        card = fakelibvirt.HostPCIDevicesInfo(num_pci=1, numa_node=0)
        self.start_compute(host, host_info=self.kind.hardware(), pci_info=card, **self.versions)
        servers = [self.boot(self.full, host=host) for _ in range(2)]
        cells = [cell for server in servers for _, cell in self.where(server["id"])]
        assert sorted(cells) == [0, 1]
        self._delete_server(servers[cells.index(1)])

    def set_image(self, policy: str) -> None:
        """State a policy in the image."""
        self.glance.images[IMAGE]["properties"]["hw_pci_numa_affinity_policy"] = policy

    def boot_on_one(self, specs: Mapping[str, str]) -> None:
        flavor = self.flavor("card", {**PINNED, **ALIAS, **specs})
        self.server = self.boot(flavor, host="one", image_uuid=IMAGE)
        self.is_on("one")

    def is_on(self, host: str, *, others: bool = False) -> None:
        """Check that the server is on node 1 of a host and has the card of the host."""
        assert check_agreement(self, self.server["id"], others=others) == [(host, 1)]
        admin = context.get_admin_context()
        node = objects.ComputeNode.get_by_nodename(admin, host)
        devices = objects.PciDeviceList.get_by_instance_uuid(admin, self.server["id"])
        assert [one.numa_node for one in devices if one.compute_node_id == node.id] == [0]

    def migrate(self, host: str) -> None:
        """Migrate the server to the other host, and confirm."""
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on(host)

    def lose_policy(self) -> None:
        """Have the server lose its policy, as a move by Nova without cpu-tiers does."""
        admin = context.get_admin_context()
        server = objects.Instance.get_by_uuid(admin, self.server["id"], ["pci_requests"])
        for request in server.pci_requests.requests:
            request.numa_policy = "legacy"
        server.save()


class TestMoves(Cards):
    def migrate_there_and_back(self) -> None:
        self.migrate("two")
        self.migrate("one")

    def test_preferred(self) -> None:
        self.boot_on_one(PREFERRED)
        self._migrate_server(self.server)
        self._revert_resize(self.server)
        self.is_on("one")
        self.migrate_there_and_back()

    def test_socket(self) -> None:
        self.boot_on_one({AFFINITY: "socket"})
        self.migrate_there_and_back()

    def test_the_policy_of_the_image(self) -> None:
        """Of a server that has moved without cpu-tiers."""
        self.set_image("preferred")
        self.boot_on_one({})
        self.lose_policy()
        self.migrate_there_and_back()

    def test_the_policy_of_a_former_image(self) -> None:
        """After a rebuild, Nova's request spec still has the policy of the former image."""
        image = copy.deepcopy(self.glance.show(None, IMAGE))
        self.glance.create(None, {**image, "id": OTHER_IMAGE})
        self.set_image("preferred")
        self.boot_on_one({})
        self._rebuild_server(self.server, OTHER_IMAGE)
        self.migrate_there_and_back()

    def test_an_evacuation(self) -> None:
        self.boot_on_one(PREFERRED)
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two")
        self.is_on("two", others=True)

    def test_an_unshelving(self) -> None:
        """Also after Nova has lost the policy in a former move."""
        self.flags(shelved_offload_time=0)
        self.boot_on_one(PREFERRED)
        self.lose_policy()
        self._shelve_server(self.server, expected_state="SHELVED_OFFLOADED")
        self.go_down("one")
        self._unshelve_server(self.server)
        self.is_on("two")

    def test_refusals(self) -> None:
        """nova-scheduler refuses where node 0 is full, and the server stays as it is.

        For another flavor, Nova requests the devices anew, with the policy of the alias.
        """
        self.boot_on_one(PREFERRED)
        other = self.flavor("other", {**PINNED, **ALIAS, **PREFERRED}, vcpus=2)
        assert "No valid host" in self.fail_to_resize(self.server, other)
        self.is_on("one")
        near = self.flavor("near", {**PINNED, **ALIAS, AFFINITY: "required"})
        assert "No valid host" in self.fault_of(self.boot(near, state="ERROR"))


class TestLiveMigrations(Cards):
    device = MappingProxyType({"live_migratable": "yes"})
    versions = MappingProxyType(VARIANT)

    def migrate_live(self, source: str, destination: str) -> None:
        self.src, self.dest = self.computes[source], self.computes[destination]
        action = {"host": destination, "block_migration": "auto"}
        self.api.post_server_action(self.server["id"], {"os-migrateLive": action})
        wait_until(lambda: self.host_of(self.server) == destination)
        self._wait_for_migration_status(self.server, ["completed"])
        wait_until(
            lambda: not any(name.startswith(source) for name in self.held(self.server["id"]))
        )
        self.is_on(destination)

    def test_preferred(self) -> None:
        """There, and back after Nova has lost the policy."""
        self.boot_on_one(PREFERRED)
        self.migrate_live("one", "two")
        self.lose_policy()
        self.migrate_live("two", "one")
