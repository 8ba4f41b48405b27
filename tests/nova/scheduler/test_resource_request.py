"""Translators of another distribution, installed for real, in Nova's scheduler."""

import pkgutil
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any, ClassVar

import fixtures
import pytest
from nova import exception, objects
from nova.scheduler import utils

from cpu_tiers import extensions
from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import options
from cpu_tiers.nova.scheduler import resource_request
from cpu_tiers.translators import BUILT_IN, ServerRequest
from cpu_tiers.translators.contract import functions_that_request
from tests.nova.cloud import MULTIPLIER, SHARES, Cloud
from tests.nova.faults import no_bad_query

LICENCES = """
    from cpu_tiers.errors import InvalidInput
    from cpu_tiers.model.request import RequestGroup

    def translate(server):
        kind = server.flavor.extra_specs.get("our:licence")
        if kind == "forged":
            raise InvalidInput.of(server.flavor.spec("our:licence"), "forged", "buy one")
        if kind == "site":
            return [RequestGroup(resources={"CUSTOM_LICENCE": 1})]
        if kind == "floating":  # of one provider, which need not be the other group's
            return [
                RequestGroup("_LICENCE", {"CUSTOM_LICENCE": 1}),
                RequestGroup("_DONGLE", {"CUSTOM_DONGLE": 1}),
            ]
        if kind == "audited":
            return [RequestGroup(required=frozenset({"CUSTOM_AUDITED"}))]
        if kind == "greedy":
            return [RequestGroup(resources={"VCPU": 1})]
        if kind == "contradiction":
            traits = frozenset({"CUSTOM_AUDITED"})
            return [RequestGroup(required=traits, forbidden=traits)]
        return []
"""

NONE: Mapping[str, str] = MappingProxyType({})


def install(folder: Path, module: str) -> Path:
    """Lay out a small distribution as pip would unpack its wheel."""
    metadata = folder / "our_cloud-1.0.dist-info"
    metadata.mkdir()
    (folder / "our_cloud.py").write_text(dedent(module))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: our_cloud\nVersion: 1.0\n")
    entry = f"[{extensions.TRANSLATORS}]\nlicences = our_cloud:translate\n"
    (metadata / "entry_points.txt").write_text(entry)
    return folder


class TestPlugin(Cloud):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        folder = install(Path(self.useFixture(fixtures.TempDir()).path), LICENCES)
        self.useFixture(fixtures.EnvironmentVariable("XDG_CACHE_HOME", str(folder)))  # stevedore's
        self.useFixture(fixtures.MonkeyPatch("sys.path", [str(folder), *sys.path]))
        self.addCleanup(sys.modules.pop, "our_cloud", None)
        self.useFixture(
            fixtures.MonkeyPatch("stevedore.extension.ExtensionManager.ENTRY_POINT_CACHE", {})
        )
        super().setUp()

    def licensed(
        self, kind: str, specs: Mapping[str, str] = NONE, **values: Any
    ) -> dict[str, Any]:
        specs = {"our:licence": kind, **specs}
        return self.boot(self.flavor(" ".join(specs.values()), specs), **values)

    def held_by(self, server: dict[str, Any]) -> dict[str, int]:
        """Return what a server holds, of the one host there is."""
        (only,) = self.held(server["id"]).values()
        return only

    def test_the_resources_of_a_plugin_join_the_resources_of_nova_and_the_shares(self) -> None:
        self.start_host("one", CUSTOM_LICENCE=2, **{SHARES: 800})
        server = self.licensed("site", {MULTIPLIER: "100"})
        plain = {"VCPU": 1, "MEMORY_MB": 512}
        assert self.held_by(server) == {**plain, SHARES: 100, "CUSTOM_LICENCE": 1}
        assert self.held_by(self.boot(self.flavor("plain"))) == plain

    def test_groups_of_a_plugin(self) -> None:
        self.start_host("one", CUSTOM_LICENCE=2, CUSTOM_DONGLE=2)
        held = self.held_by(self.licensed("floating"))
        assert held == {"VCPU": 1, "MEMORY_MB": 512, "CUSTOM_LICENCE": 1, "CUSTOM_DONGLE": 1}

    def test_amounts_in_the_flavor_win(self) -> None:
        self.start_host("one", CUSTOM_LICENCE=5)
        server = self.licensed("site", {"resources:CUSTOM_LICENCE": "3"})
        assert self.held_by(server)["CUSTOM_LICENCE"] == 3
        none = self.licensed("site", {"resources:CUSTOM_LICENCE": "0"})
        assert "CUSTOM_LICENCE" not in self.held_by(none)

    def test_a_resize_requests_the_resources_of_a_plugin(self) -> None:
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))  # there are none
        self.start_host("one", CUSTOM_LICENCE=2)
        self.start_host("two", CUSTOM_LICENCE=2)
        server = self.boot(self.flavor("plain"))
        self._resize_server(server, self.flavor("licensed", {"our:licence": "site"}))
        assert self.held_by(server)["CUSTOM_LICENCE"] == 1

    def test_names_are_created_in_placement_before_the_query(self) -> None:
        self.start_host("one")
        with no_bad_query():
            for kind in ("site", "audited", "floating"):
                self.licensed(kind, state="ERROR")
        assert {"CUSTOM_LICENCE", "CUSTOM_DONGLE"} <= set(self._get_all_resource_classes())
        assert "CUSTOM_AUDITED" in self._get_all_traits()

    def test_the_refusal_of_a_plugin_reaches_the_user(self) -> None:
        self.start_host("one")
        server = self.licensed("forged", state="ERROR")
        assert self.fault_of(server) == (
            "No valid host was found. flavor forged, extra spec our:licence: forged; buy one"
        )

    def test_a_contradiction_is_refused_with_the_reason(self) -> None:
        self.start_host("one")
        greedy = self.licensed("greedy", state="ERROR")
        assert "Nova and a translator both request VCPU" in self.fault_of(greedy)
        both = self.licensed("contradiction", state="ERROR")
        assert "CUSTOM_AUDITED required and forbidden" in self.fault_of(both)


def seats(server: ServerRequest) -> Iterable[RequestGroup]:
    """Translate an extra spec, as a contributor's new built-in translator does."""
    if "our:seat" not in server.flavor.extra_specs:
        return []
    return [RequestGroup(resources={"CUSTOM_SEAT": 1})]


class TestNewBuiltIn(Cloud):
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def setUp(self) -> None:
        path = "cpu_tiers.nova.scheduler.resource_request.BUILT_IN"
        self.useFixture(fixtures.MonkeyPatch(path, {**BUILT_IN, "seats": seats}))
        super().setUp()

    def test_the_groups_of_a_plugin_are_requested_beside_the_groups_of_nova(self) -> None:
        self.start_host("one", CUSTOM_SEAT=1)
        server = self.boot(self.flavor("seated", {"our:seat": "yes"}))
        (held,) = self.held(server["id"]).values()
        assert held == {"VCPU": 1, "MEMORY_MB": 512, "CUSTOM_SEAT": 1}
        no_seat_left = self.boot(self.flavor("second", {"our:seat": "yes"}), state="ERROR")
        assert "No valid host" in self.fault_of(no_seat_left)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_translator_serves_the_scheduler_or_names_the_requester(name: str) -> None:
    requested_by = functions_that_request(BUILT_IN[name])
    assert (name in resource_request.scheduler_translators()) == (not requested_by)
    for function in requested_by:
        assert pkgutil.resolve_name(function)  # Nova, or cpu-tiers, still has it


def test_only_shares_of_our_own_are_not_requested_by_nova() -> None:
    assert resource_request.scheduler_translators().keys() & BUILT_IN.keys() == {"shares"}


def test_the_group_of_a_port_is_not_changed() -> None:
    """The group belongs to the request spec, from which Nova builds the next query, too."""
    port = objects.RequestGroup(requester_id="_PORT", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1})
    for _ in range(2):
        request = utils.ResourceRequest()
        request._add_request_group(port)
        group = RequestGroup("_PORT", {"CUSTOM_LICENCE": 1}, frozenset({"CUSTOM_AUDITED"}))
        resource_request._add(request, group, "f")
        assert request.get_request_group("_PORT").resources == {
            "NET_BW_EGR_KILOBIT_PER_SEC": 1,
            "CUSTOM_LICENCE": 1,
        }
    assert (port.resources, port.required_traits) == ({"NET_BW_EGR_KILOBIT_PER_SEC": 1}, set())


def test_any_failure_of_a_translator_is_no_valid_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def translate(server: ServerRequest) -> Iterable[RequestGroup]:
        raise KeyError("our:licence")

    options.register(filter_scheduler)
    monkeypatch.setattr(resource_request, "scheduler_translators", lambda: {"ours": translate})
    from_request_spec = partial(resource_request._add_groups, utils.ResourceRequest)
    sizes = {"vcpus": 1, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    flavor = objects.Flavor(name="gold", extra_specs={}, **sizes)
    with pytest.raises(exception.NoValidHost, match="a translator for flavor gold: KeyError"):
        from_request_spec(utils.ResourceRequest, objects.RequestSpec(flavor=flavor, image=None))
