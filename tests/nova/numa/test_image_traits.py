"""A project's image requires traits that do not exist: nobody creates them in Placement."""

import copy
from uuid import uuid4

from tests.nova.computes import Computes
from tests.nova.numa.pinning import PINNING
from tests.nova.script import IMAGE


class TestTraitsOfAnImage(Computes):
    kind = PINNING
    microversion = "2.94"

    def setUp(self) -> None:
        super().setUp()
        self.start_compute("one", host_info=self.kind.hardware())

    def boot_untrusted(self, *, disk: int, numa: bool) -> str:
        """Boot a server of an image with three unknown traits; return its status."""
        self.restart_scheduler(query_placement_for_numa=numa)
        image = {**copy.deepcopy(self.glance.show(None, IMAGE)), "id": str(uuid4())}
        traits = {f"trait:CUSTOM_EVIL_{number}": "required" for number in range(3)}
        image["properties"] = {**image["properties"], **traits}
        self.glance.create(None, image)
        flavor = self._create_flavor(vcpu=1, memory_mb=128, disk=disk, ephemeral=0)
        body = self._build_server(flavor_id=flavor, networks="none", image_uuid=image["id"])
        server = self.api.post_server({"server": body})
        status: str = self._wait_for_state_change(server, "ERROR")["status"]
        return status

    def test_no_trait_is_created(self) -> None:
        for numa in (False, True):
            for disk in (0, 1):
                assert self.boot_untrusted(disk=disk, numa=numa) == "ERROR"
        traits = self.placement.get("/traits", version="1.6").body["traits"]
        assert [name for name in traits if "EVIL" in name] == []
