"""Ports that request only traits, or any one of several traits, reach Placement from Nova."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl

import pytest
from nova import objects
from nova.network import constants
from nova.scheduler.utils import ResourceRequest

from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.scheduler import port_traits
from cpu_tiers.nova.scheduler.features import SCHEDULER
from tests.nova.best_effort import ANY, P1, P2, BestEffort
from tests.nova.networks import EGRESS

TRAITS = ["CUSTOM_PHYSNET_PHYSNET0", "CUSTOM_VNIC_TYPE_NORMAL"]
MARK, ASK, *_ = port_traits.SEAMS


def group(name: str, resources: Mapping[str, int], required: list[str]) -> dict[str, Any]:
    return {"id": name, "resources": dict(resources), "required": required}


def query(
    groups: list[dict[str, Any]],
    same_subtree: list[str],
    specs: Mapping[str, str],
) -> tuple[str, list[tuple[str, str]], frozenset[str]]:
    """Return the microversion and the parameters that Nova sends, and the names it creates."""
    objects.register_all()
    request: dict[str, Any] = {"request_groups": groups, "same_subtree": same_subtree}
    sizes = {"vcpus": 2, "memory_mb": 64, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    spec = objects.RequestSpec(
        flavor=objects.Flavor(name="f", flavorid="f", extra_specs=dict(specs), **sizes),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=objects.RequestGroup.from_extended_port_request(None, request),
        request_level_params=objects.RequestLevelParams.from_port_request(request),
    )
    assert MARK.wrap
    assert ASK.wrap
    resources = MARK.wrap(ResourceRequest.from_request_spec.__func__)(ResourceRequest, spec)
    client = SimpleNamespace(get=mock.Mock())

    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> None:
        url = f"/allocation_candidates?{resources.to_querystring()}"
        self.get(url, version="1.36", global_request_id=context)

    ASK.wrap(get_allocation_candidates)(client, "req-1", resources)
    ((url,), kwargs) = client.get.call_args
    assert kwargs["global_request_id"] == "req-1"
    pairs = parse_qsl(url.partition("?")[2], keep_blank_values=True)
    needed = query_of(resources).names
    named = sorted(pair for pair in pairs if pair[0] not in ("limit", "resources"))
    return kwargs["version"], named, needed


@pytest.mark.parametrize(
    ("groups", "same_subtree", "expected"),
    [
        pytest.param(
            [group("a", {EGRESS: 0}, TRAITS)],
            ["a"],
            ("1.36", [("requireda", ",".join(TRAITS)), ("same_subtree", "a")]),
            id="a minimum of 0, as Neutron writes it",
        ),
        pytest.param(
            [group("a", {}, ["CUSTOM_BEST_EFFORT_BW", "!CUSTOM_GUARANTEED_BW"])],
            [],
            (
                "1.36",
                [
                    ("requireda", "CUSTOM_BEST_EFFORT_BW,!CUSTOM_GUARANTEED_BW"),
                    ("same_subtree", "a"),
                ],
            ),
            id="traits only, in no subtree",
        ),
        pytest.param(
            [group("a", {EGRESS: 5}, [ANY, "CUSTOM_VNIC_TYPE_NORMAL"]), group("b", {}, TRAITS)],
            ["a", "b"],
            (
                "1.39",
                [
                    ("requireda", "CUSTOM_VNIC_TYPE_NORMAL"),
                    ("requireda", ANY),
                    ("requiredb", ",".join(TRAITS)),
                    ("resourcesa", f"{EGRESS}:5"),
                    ("same_subtree", "a,b"),
                ],
            ),
            id="any one of several",
        ),
        pytest.param(
            [group("a", {EGRESS: 5}, TRAITS)],
            ["a"],
            (
                "1.36",
                [
                    ("requireda", ",".join(TRAITS)),
                    ("resourcesa", f"{EGRESS}:5"),
                    ("same_subtree", "a"),
                ],
            ),
            id="Nova's own form",
        ),
    ],
)
def test_the_form(
    groups: list[dict[str, Any]],
    same_subtree: list[str],
    expected: tuple[str, list[tuple[str, str]]],
) -> None:
    version, parameters, needed = query(groups, same_subtree, {})
    assert (version, parameters) == expected
    physnets = {"/traits/CUSTOM_PHYSNET_NOWHERE", "/traits/CUSTOM_PHYSNET_PHYSNET0"}
    assert needed == (physnets if version == "1.39" else set())


def test_a_flavor_group_with_only_traits_is_unchanged() -> None:
    specs = {"trait7:HW_NUMA_ROOT": "required"}
    _, parameters, _ = query([group("a", {}, TRAITS)], ["a"], specs)
    assert ("resources7", "") in parameters


class TestPortTraits(BestEffort):
    CAST_AS_CALL = False

    def test_boot_moves_and_an_evacuation(self) -> None:
        # Nova's query: Placement answers 400 for either port.
        for port in (P1, P2):
            stock = self.server_of(port, expected_state="ERROR")
            assert "No valid host" in self.fault_of(stock)
            self._delete_server(stock)
        SCHEDULER.start()
        refused = self.server_of(P1, host="none", expected_state="ERROR")
        self._delete_server(refused)
        self.server = self.server_of(P1, P2, host="one")
        self.is_on("one")
        self.src, self.dest = self.computes["one"], self.computes["two"]
        self._live_migrate(self.server)
        self.is_on("two")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on("one")
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two")
        assert self.neutron.profile(P1)["allocation"] == {"best": self.device_of("two")}
        self._delete_server(self.server)
        assert constants.ALLOCATION not in self.neutron.profile(P1)
