"""Virtual GPUs on servers with NUMA nodes.

Nova has no NUMA affinity for them, and their providers stay below the root (spec "NUMA topology
with RPs", Proposed change). So a server on any node can have any of them, before and after moves.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pytest
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt import base

from tests.nova.computes import Computes
from tests.nova.numa.agreement import check_agreement, held_beside_nodes, held_of_nodes
from tests.nova.numa.devices import MIGRATES_GPUS, Gpus, gpus_of
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import OPTIONS_OFF, PINNED, PINNING, TWO
from tests.nova.patience import wait_until

GPUS = (fakelibvirt.MDEVCAP_DEV1_PCI_ADDR, fakelibvirt.MDEVCAP_DEV2_PCI_ADDR)
GPU = {"resources:VGPU": "1"}
TWO_GPUS = {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"}


def flavor_with(
    cloud: Computes, specs: Mapping[str, str], *, vcpus: int = 4, disk_gb: int = 0
) -> str:
    """Make a flavor with dedicated CPUs; return its id."""
    name = f"flavor {len(cloud.api.get_flavors())}"
    return cloud.flavor(name, {**PINNED, **specs}, vcpus=vcpus, disk_gb=disk_gb)


class Vgpus(base.LibvirtMigrationMixin, Computes):
    """Hosts of two NUMA nodes, with two GPUs of 16 virtual GPUs each."""

    kind = PINNING
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(Gpus())
        self.start("one")

    def start(self, name: str) -> None:
        """Start a host."""
        gpus = fakelibvirt.HostPCIDevicesInfo(num_mdevcap=2)
        self.start_compute(name, host_info=self.kind.hardware(), pci_info=gpus, **MIGRATES_GPUS)

    def gpus_of(self, server: dict[str, Any]) -> list[str]:
        """Check that a guest has the virtual GPUs that it holds; return their providers."""
        host = self.host_of(server)
        has = gpus_of(self, host, server["id"])
        held = held_beside_nodes(self, server["id"])
        held.pop(host, None)  # its disk
        assert {name: {"VGPU": has.count(name)} for name in has} == held
        return has

    def gone_from(self, host: str, server: dict[str, Any]) -> None:
        """Wait until a server holds nothing of its former host."""
        wait_until(lambda: not any(name.startswith(host) for name in self.held(server["id"])))


class TestVgpusOfNova(Vgpus):
    """With all options of cpu-tiers off."""

    kind = OPTIONS_OFF

    def test_an_evacuation_is_refused(self) -> None:
        server = self.boot(flavor_with(self, GPU, disk_gb=1))
        self.start("two")
        self.go_down("one")
        with pytest.raises(OpenStackApiException, match="BuildAbortException"):
            self.api.post_server_action(server["id"], {"evacuate": {"host": "two"}})
        assert self.host_of(server) == "one"

    def test_a_reverted_resize_on_the_same_host_loses_the_gpu(self) -> None:
        self.flags(allow_resize_to_same_host=True)
        server = self.boot(flavor_with(self, GPU))
        assert len(self.gpus_of(server)) == 1
        self._resize_server(server, flavor_with(self, GPU, vcpus=2))
        assert len(self.gpus_of(server)) == 1
        self._revert_resize(server)
        assert gpus_of(self, "one", server["id"]) == []
        assert {"VGPU": 1} in self.held(server["id"]).values()


class TestVgpus(Vgpus):
    def test_every_node_takes_servers_with_a_gpu(self) -> None:
        """Of four dedicated CPUs on each of two nodes, two servers take all."""
        flavor = flavor_with(self, GPU)
        servers = [self.boot(flavor) for _ in range(2)]
        assert {cell for one in servers for _, cell in self.where(one["id"])} == {0, 1}
        assert all(len(self.gpus_of(server)) == 1 for server in servers)
        assert "No valid host" in self.fault_of(self.boot(flavor, state="ERROR"))

    def test_a_gpu_with_a_trait(self) -> None:
        """Each node takes a server with the only GPU that has the trait."""
        name = f"one_{GPUS[1]}"
        self._create_trait("CUSTOM_BLUE")
        self._set_provider_traits(self._get_provider_uuid_by_name(name), ["CUSTOM_BLUE"])
        flavor = flavor_with(self, {**GPU, "trait:CUSTOM_BLUE": "required"})
        servers = [self.boot(flavor) for _ in range(2)]
        assert {cell for one in servers for _, cell in self.where(one["id"])} == {0, 1}
        assert [self.gpus_of(server) for server in servers] == [[name], [name]]

    @pytest.mark.skipif(
        version("nova") < "33", reason="Nova 31 and 32 give a guest the GPUs of one provider alone"
    )
    def test_two_gpus_and_two_nodes(self) -> None:
        server = self.boot(flavor_with(self, {**TWO, **TWO_GPUS}))
        assert {cell for _, cell in self.where(server["id"])} == {0, 1}
        assert self.gpus_of(server) == [f"one_{gpu}" for gpu in GPUS]

    def test_moves(self) -> None:
        """A migration that is confirmed, and a resize to two nodes that is reverted.

        Without a disk, the server itself holds the GPUs of both hosts on its way.
        """
        server = self.boot(flavor_with(self, GPU))
        self.start("two")
        self._migrate_server(server)
        check_agreement(self, server["id"], others=True)
        self._confirm_resize(server)
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        (gpu,) = self.gpus_of(server)
        self._resize_server(server, flavor_with(self, {**TWO, **TWO_GPUS}))
        assert self.host_of(server) == "one"
        check_agreement(self, server["id"], others=True)
        self.flags(host="two")  # with that of the last start, libvirt's driver undefines the guest
        self._revert_resize(server)
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        assert self.gpus_of(server) == [gpu]
        self._delete_server(server)
        assert self.tree.used() == {}

    def test_a_live_migration(self) -> None:
        for disk_gb in (0, 1):
            server = self.boot(flavor_with(self, GPU, disk_gb=disk_gb), host="one")
            if not disk_gb:
                self.start("two")
            self.src, self.dest, self.server = self.computes["one"], self.computes["two"], server
            self._live_migrate(server, "completed")
            self.gone_from("one", server)
            assert {host for host, _ in self.where(server["id"])} == {"two"}
            assert len(self.gpus_of(server)) == 1

    def test_a_host_without_nodes(self) -> None:
        """A live migration goes there, and a cold migration back and there again."""
        life = Life(self)
        life.reports |= {"one": True, "two": None}
        server = self.boot(flavor_with(self, GPU))
        self.start("two")
        self.src, self.dest, self.server = self.computes["one"], self.computes["two"], server
        self._live_migrate(server)
        self._wait_for_state_change(server, "ACTIVE")
        self.gone_from("one", server)
        for host in ("one", "two"):
            self._migrate_server(server)
            self._confirm_resize(server)
            assert self.host_of(server) == host
            assert bool(held_of_nodes(self, server["id"])) == (host == "one")
            assert len(self.gpus_of(server)) == 1

    def test_a_server_older_than_the_nodes(self) -> None:
        self.nodes(None)
        self.start("two")
        server = self.boot(flavor_with(self, GPU), host="two")
        assert not held_of_nodes(self, server["id"])
        before = held_beside_nodes(self, server["id"])
        self.nodes(True)
        self.restart("two")
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        (gpu,) = self.gpus_of(server)
        assert before[gpu] == {"VGPU": 1}
