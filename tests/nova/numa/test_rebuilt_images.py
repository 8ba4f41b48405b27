"""Rebuilds with an image that requires a trait of the host.

nova-conductor looks for the trait only on the providers of which the server has allocations. The
traits of the host are on the root, of which a server without a disk has no allocation.
"""

import copy

import pytest
from nova import context
from nova.tests.functional.api.client import OpenStackApiException

from tests.nova.computes import Computes
from tests.nova.numa.pinning import IMAGE, PINNED, PINNING

TRUSTED = "CUSTOM_TRUSTED"
OTHER_IMAGE = "6d7c4a3e-7a5f-4f6c-9a7e-0c3b7a1d5e11"


class TestRebuiltImages(Computes):
    """A host with a trait of its operator, and an image that requires the trait."""

    kind = PINNING
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        root = self.start_host("one")
        self._create_trait(TRUSTED)
        self._set_provider_traits(root, [TRUSTED])
        image = copy.deepcopy(self.glance.show(None, IMAGE))
        image |= {"id": OTHER_IMAGE, "properties": {f"trait:{TRUSTED}": "required"}}
        self.glance.create(None, image)

    def boot_and_rebuild(self, disk_gb: int) -> None:
        """Boot a server, and rebuild it with the other image."""
        flavor = self.flavor("flavor", PINNED, disk_gb=disk_gb)
        self.server = self.boot(flavor, image_uuid=IMAGE)
        self.server = self._rebuild_server(self.server, OTHER_IMAGE)

    def test_a_server_with_a_disk(self) -> None:
        self.boot_and_rebuild(1)
        assert self.server["image"]["id"] == OTHER_IMAGE

    def test_a_server_without_a_disk(self) -> None:
        with pytest.raises(OpenStackApiException, match="NoValidHost"):
            self.boot_and_rebuild(0)
        assert "Image traits cannot be satisfied" in self.fault_of(self.server)
        self.api.post_server_action(self.server["id"], {"os-resetState": {"state": "active"}})
        assert self.where(self.server["id"]) == [("one", 0)]

    def test_the_trait_on_the_nodes_as_well(self) -> None:
        """An operator sets the trait, and nova-compute leaves it there."""
        for cell in (0, 1):
            node = self._get_provider_uuid_by_name(f"one_NUMA{cell}")
            traits = self._get_provider_traits(node)
            self._set_provider_traits(node, [*traits, TRUSTED])
        admin = context.get_admin_context()
        self.computes["one"].manager.update_available_resource(admin, startup=False)
        self.restart("one")
        assert TRUSTED in self.tree.traits("one", "one_NUMA0")
        self.boot_and_rebuild(0)
        assert self.server["image"]["id"] == OTHER_IMAGE
        assert self.where(self.server["id"]) == [("one", 0)]
