"""nova-api tells all faults of a flavor where a server is created or resized, and nowhere else."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import fixtures
import pytest
from nova import context, objects
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers import extensions
from cpu_tiers.conf import api, filter_scheduler
from cpu_tiers.errors import ExtensionError, InvalidInput
from cpu_tiers.nova import options
from cpu_tiers.nova.api import flavor_admission
from cpu_tiers.nova.options import CONF
from cpu_tiers.translators import ServerRequest, Translator
from cpu_tiers.translators.contract import already_requested_by
from tests.nova.cloud import MULTIPLIER, SHARES, Cloud
from tests.nova.computes import PLAIN

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
        answer = self.refused_boot({"resources:VCPU_SHARES": "50"})
        assert answer.endswith("its name in Placement is CUSTOM_VCPU_SHARES")
        several = {**BOTH, "hw:cpu_policy": "pinned", "hw:numa_nodes": "0", "trait:HW_X": "maybe"}
        answer = self.refused_boot(several)
        for fault in ("both are set", "'pinned'", "hw:numa_nodes: got '0'", "'maybe'"):
            assert fault in answer
        assert "group_policy" in self.refused_boot(
            {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_B": "1"}
        )
        self.flags(group="filter_scheduler", query_placement_for_numa=True)
        beside = self.refused_boot({"hw:numa_nodes": "1", "resources:MEMORY_MB": "256"})
        assert "256, but its NUMA nodes have 512; remove it" in beside
        assert self.api.get_servers() == []

    def test_a_resize_to_a_faulty_flavor_is_refused(self) -> None:
        server = self.boot(self.tier("gold", "100"))
        resize = {"resize": {"flavorRef": self.flavor("bad", BOTH)}}
        answer = self.refused(lambda: self.api.post_server_action(server["id"], resize))
        assert "both set the weight of the server" in answer
        assert self.api.get_server(server["id"])["status"] == "ACTIVE"
        assert self.allocated(server["id"]) == {"one": 100}

    def test_an_existing_server_is_rebuilt_with_a_faulty_flavor(self) -> None:
        """test_mixed_cpus has the refusal of an image that brings a fault."""
        server = self.boot(self.flavor("plain", vcpus=2))
        admin = context.get_admin_context()
        instance = objects.Instance.get_by_uuid(admin, server["id"], expected_attrs=["flavor"])
        flavor = instance.flavor
        flavor.extra_specs = {MULTIPLIER: "gold", "hw:cpu_realtime": "perhaps"}
        instance.flavor = flavor
        instance.save()
        self._rebuild_server(server, OTHER_IMAGE)


class TestOff(Cloud):
    """Without the option, nova-api accepts each flavor that an unmodified Nova accepts."""

    microversion = "2.85"
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def test_nothing_is_refused(self) -> None:
        self.start_host("one")
        self.boot(self.flavor("old", {PLAIN: "20000", "hw:cpu_realtime": "perhaps"}))


@pytest.fixture
def refusing() -> Iterator[None]:
    """A nova-api that refuses faulty flavors, and looks for translators once more."""
    options.register(api)
    options.register(filter_scheduler)
    CONF.set_override("refuse_faulty_flavors", True, api.GROUP)
    flavor_admission._translators.cache_clear()
    yield
    CONF.clear_override("refuse_faulty_flavors", api.GROUP)
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)
    flavor_admission._translators.cache_clear()


def faults(specs: Mapping[str, str]) -> list[str]:
    sizes = {"vcpus": 4, "memory_mb": 513, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    flavor = objects.Flavor(name="f", **sizes, extra_specs=dict(specs))
    return [str(fault) for fault in flavor_admission.faults_of(flavor, None)]


@pytest.mark.parametrize(
    ("specs", "fault"),
    [
        pytest.param({"resources:MEMORY_MB": "512"}, "but its NUMA nodes have 513", id="memory"),
        pytest.param({"resources:VCPU": "3"}, "3, but its NUMA nodes have 4", id="vCPUs"),
        pytest.param({"hw:mem_page_size": "2MB"}, "not a multiple of the page size", id="pages"),
        pytest.param(
            {"resources_A:VCPU": "4", "trait_A:CUSTOM_A": "required"},
            "traits (CUSTOM_A) but no resources",
            id="traits of CPUs that the nodes have",
        ),
    ],
)
@pytest.mark.usefixtures("refusing")
def test_faults_of_numa_nodes_depend_on_the_query(specs: dict[str, str], fault: str) -> None:
    specs = {"hw:numa_nodes": "1", **specs}
    assert faults(specs) == []
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    (text,) = faults(specs)
    assert fault in text


def refuse(server: ServerRequest) -> Any:
    """A translator of another distribution that refuses each flavor."""
    raise InvalidInput.of(f"flavor {server.flavor.name}", "no license", "buy a license")


def fail(server: ServerRequest) -> Any:
    """A translator of another distribution with a bug."""
    raise KeyError(server.flavor.name)


@pytest.mark.parametrize(
    ("translator", "expected"),
    [
        pytest.param(refuse, ["flavor f: no license; buy a license"], id="a fault"),
        pytest.param(already_requested_by("of.Nova")(lambda _: refuse(_)), [], id="not called"),
        pytest.param(fail, [], id="a bug: nova-scheduler decides"),
    ],
)
@pytest.mark.usefixtures("refusing")
def test_foreign_translators_refuse_flavors(translator: Translator, expected: list[str]) -> None:
    with fixtures.MockPatchObject(extensions, "load", lambda _: {"theirs": translator}):
        assert faults({}) == expected
        shares = faults({PLAIN: "0"})
    assert len(shares) == len(expected) + 1


@pytest.mark.usefixtures("refusing")
def test_a_translator_that_does_not_load_refuses_nothing() -> None:
    load = fixtures.MockPatchObject(extensions, "load", side_effect=ExtensionError("no module"))
    with load:
        assert faults({}) == []
        assert len(faults({PLAIN: "0"})) == 1
