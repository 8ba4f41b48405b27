"""Flavors of a snapshot. ``tests/functional/cli/test_cloud_source.py`` has the commands."""

import json
from pathlib import Path
from typing import NoReturn

import pytest

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_source import CloudSource

GOLD = Flavor(name="gold", vcpus=1, memory_mb=1)


def nobody() -> NoReturn:
    raise AssertionError("the cloud is not asked")


def source(tmp_path: Path, *flavors: Flavor) -> CloudSource:
    path = tmp_path / "s.json"
    snapshot = Snapshot(providers=(), consumers={}, flavors=flavors)
    path.write_text(json.dumps(snapshot.to_json()))
    return CloudSource(nobody, nobody, str(path))


def test_a_flavor(tmp_path: Path) -> None:
    cloud = source(tmp_path, GOLD)
    assert cloud.flavors_named(["gold"]) == [GOLD]
    assert list(cloud.flavors(FaultList(), lambda _: ())) == [GOLD]


def test_a_misspelt_flavor(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        source(tmp_path, GOLD).flavors_named(["golf"])
    assert str(caught.value) == (
        "--flavor golf: not a flavor of the snapshot; did you mean gold? name a flavor of the"
        " snapshot"
    )


def test_no_flavors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the snapshot has no flavors; give the flavor"):
        source(tmp_path).flavors_named(["gold"])
