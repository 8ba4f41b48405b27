"""Traits that Placement does not know: it refuses queries that require or forbid them."""

from dataclasses import replace

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.plan.known_traits import KnownTraits
from tests.unit.cloud_model.clouds import provider

CLOUD = Snapshot(
    providers=(provider("h0", None, "CUSTOM_USED", VCPU=8),),
    consumers={},
    traits=frozenset({"CUSTOM_IDLE"}),
)
"""A host with a trait, and a trait that no host has."""


def flavor(**traits: str) -> Flavor:
    return Flavor(
        name="f",
        vcpus=1,
        memory_mb=1,
        extra_specs={f"trait:{name}": value for name, value in traits.items()},
    )


@pytest.mark.parametrize(
    ("traits", "is_refused"),
    [
        pytest.param({"CUSTOM_OTHER": "forbidden"}, True, id="forbidden"),
        pytest.param({"CUSTOM_OTHER": "required"}, True, id="required"),
        pytest.param({"CUSTOM_OTHER": "preferred"}, False, id="a preferred trait is in no query"),
        pytest.param({"CUSTOM_IDLE": "forbidden"}, False, id="known, of no host"),
        pytest.param({"CUSTOM_USED": "forbidden"}, False, id="of a host"),
        pytest.param({"HW_CPU_X86_AVX2": "forbidden"}, False, id="a standard trait"),
    ],
)
def test_flavors(traits: dict[str, str], is_refused: bool) -> None:  # a table
    why = KnownTraits(CLOUD).refusal(flavor(**traits), None)
    assert ("does not know CUSTOM_OTHER" in why) is is_refused
    assert bool(why) is is_refused


def test_the_trait_of_an_image() -> None:
    image = Image("i", {"trait:CUSTOM_OTHER": "required"})
    assert KnownTraits(CLOUD).refusal(flavor(), image).endswith("trait create CUSTOM_OTHER")


def test_a_snapshot_that_does_not_say_which_traits_there_are() -> None:
    known = KnownTraits(replace(CLOUD, traits=None))
    forbids = flavor(CUSTOM_OTHER="forbidden", CUSTOM_USED="forbidden")
    assert known.refusal(forbids, None) == ""
    assert known.unread(forbids) == {"CUSTOM_OTHER"}
    assert KnownTraits(CLOUD).unread(forbids) == set()


@pytest.mark.parametrize("traits", [None, frozenset(), frozenset({"CUSTOM_IDLE"})])
def test_the_document(traits: frozenset[str] | None) -> None:
    given = replace(CLOUD, traits=traits)
    again = Snapshot.parse(given.to_json(), where="s")
    assert again.traits == traits
    assert masked(again).traits == traits
