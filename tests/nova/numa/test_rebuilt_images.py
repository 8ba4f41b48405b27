"""Rebuilds with an image that requires a trait of the host.

nova-conductor looks for the trait only on the providers of which the server has allocations, and
the traits of the host are on the root.
"""

import copy

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
        self._set_provider_traits(root, [*self._get_provider_traits(root), TRUSTED])
        image = copy.deepcopy(self.glance.show(None, IMAGE))
        image |= {"id": OTHER_IMAGE, "properties": {f"trait:{TRUSTED}": "required"}}
        self.glance.create(None, image)

    def test_servers_with_and_without_a_disk(self) -> None:
        for disk_gb in (1, 0):
            flavor = self.flavor(f"of {disk_gb}", PINNED, disk_gb=disk_gb)
            server = self.boot(flavor, image_uuid=IMAGE)
            server = self._rebuild_server(server, OTHER_IMAGE)
            assert server["image"]["id"] == OTHER_IMAGE
            assert [host for host, _ in self.where(server["id"])] == ["one"]
