"""nova-api tells all faults of a flavor where a server is created or resized, and nowhere else."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from nova.tests.functional.api.client import OpenStackApiException

from tests.nova.cloud import MULTIPLIER, SHARES, Cloud
from tests.nova.computes import PLAIN
from tests.nova.old_servers import Old, plant

OTHER_IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"
BOTH = {MULTIPLIER: "2.5", PLAIN: "100"}


class TestAdmission(Cloud):
    """One host; the flavors are made with microversion 2.85, which validates no extra spec."""

    microversion = "2.85"
    refuses_faulty_flavors = True

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one", **{SHARES: 800})

    def refused(self, ask: Callable[[], Any]) -> str:
        """Ask for what nova-api must answer 400 to; return the faults that the user sees."""
        with pytest.raises(OpenStackApiException) as caught:
            ask()
        assert caught.value.response.status_code == 400
        message: str = caught.value.response.json()["badRequest"]["message"]
        return message

    def refused_boot(self, specs: Mapping[str, str], vcpus: int = 1) -> str:
        flavor = self.flavor("bad", specs, vcpus=vcpus)
        server = {"name": "s", "imageRef": OTHER_IMAGE, "flavorRef": flavor}
        self.api.microversion = "2.1"
        answer = self.refused(lambda: self.api.post_server({"server": server}))
        self.api.microversion = self.microversion
        self.api.delete_flavor(flavor)
        return answer

    def test_a_boot_is_refused_with_every_fault(self) -> None:
        assert "2000 x 10 vCPUs is a weight of 20000" in self.refused_boot(
            {MULTIPLIER: "2000"}, vcpus=10
        )
        assert "both are set ('2.5' and '100')" in self.refused_boot(BOTH)
        for shares in ("0", "20000"):
            answer = self.refused_boot({PLAIN: shares})
            assert answer.endswith(f"got '{shares}'; give a whole number from 1 to 10000")
        several = {**BOTH, "hw:cpu_policy": "pinned", "hw:numa_nodes": "0", "trait:HW_X": "maybe"}
        answer = self.refused_boot(several)
        for fault in ("both are set", "'pinned'", "hw:numa_nodes: got '0'", "'maybe'"):
            assert fault in answer
        assert "group_policy" in self.refused_boot(
            {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_B": "1"}
        )
        assert self.api.get_servers() == []

    def test_a_resize_to_a_faulty_flavor_is_refused(self) -> None:
        server = self.boot(self.tier("gold", "100"))
        resize = {"resize": {"flavorRef": self.flavor("bad", BOTH)}}
        answer = self.refused(lambda: self.api.post_server_action(server["id"], resize))
        assert "both set the weight of the server" in answer
        assert self.api.get_server(server["id"])["status"] == "ACTIVE"
        assert self.allocated(server["id"]) == {"one": 100}

    def test_a_server_that_exists_is_rebuilt_whatever_its_flavor(self) -> None:
        """test_mixed_cpus has the refusal of an image that brings a fault."""
        server = self.boot(self.flavor("plain", vcpus=2))
        plant(server["id"], Old("text", {MULTIPLIER: "gold", "hw:cpu_realtime": "perhaps"}))
        self._rebuild_server(server, OTHER_IMAGE)


class TestOff(Cloud):
    """Without the option, nova-api accepts each flavor that an unmodified Nova accepts."""

    microversion = "2.85"
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def test_nothing_is_refused(self) -> None:
        self.start_host("one")
        self.boot(self.flavor("old", {PLAIN: "20000", "hw:cpu_realtime": "perhaps"}))
