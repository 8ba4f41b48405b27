"""Flavors of a snapshot. ``tests/functional/cli/test_cloud_source.py`` has the commands."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.snapshot_argument import flavor_in, flavors_of
from cpu_tiers.tools.simulation.snapshot import Snapshot

GOLD = Flavor(name="gold", vcpus=1, memory_mb=1)
SNAPSHOT = Snapshot(providers=(), consumers={}, flavors=(GOLD,))


def test_a_flavor() -> None:
    assert flavor_in(SNAPSHOT, "s.json", "gold") is GOLD
    assert flavors_of(SNAPSHOT, "s.json") == (GOLD,)


def test_a_misspelt_flavor() -> None:
    with pytest.raises(InvalidInput) as caught:
        flavor_in(SNAPSHOT, "s.json", "golf")
    assert str(caught.value) == (
        "--flavor golf: not a flavor of the snapshot; did you mean gold? name a flavor of the"
        " snapshot"
    )


def test_no_flavors() -> None:
    empty = Snapshot(providers=(), consumers={})
    with pytest.raises(InvalidInput, match="the snapshot has no flavors; give the flavor"):
        flavor_in(empty, "s.json", "gold")
