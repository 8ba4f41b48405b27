"""``cpu-tiers cloud snapshot`` on a Placement behind HTTP."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.tools.frame.cloud_source import read_snapshot
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync

Command = Callable[..., Any]
TREE = ProviderTree(
    providers=(
        ResourceProvider(name="cn1", inventories={"VCPU": Inventory(total=4, max_unit=4)}),
        ResourceProvider(
            name="cn1_NUMA0",
            parent="cn1",
            inventories={"MEMORY_MB": Inventory(total=64, max_unit=64)},
            traits=frozenset(["HW_NUMA_ROOT"]),
        ),
    ),
    managed_classes=frozenset({"VCPU", "MEMORY_MB"}),
)


def test_the_file(
    run: Command, client: PlacementClient, placement_conf: Path, tmp_path: Path
) -> None:
    sync(client, TREE)
    path = tmp_path / "cloud.json"
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    root, node = read_snapshot(str(path)).providers
    assert (root.name, root.parent, node.name, node.parent) == (
        "cn1",
        None,
        "cn1_NUMA0",
        root.uuid,
    )
    assert root.inventories == TREE.root.inventories
    assert node.traits == {"HW_NUMA_ROOT"}
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors", "--mask")
    assert json.loads(path.read_text())["masked"] is True
    assert "cn1" not in path.read_text()


def test_no_file_without_the_flavors(
    run: Command, client: PlacementClient, placement_conf: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cloud.json"
    result = run("--config-file", placement_conf, "cloud", "snapshot", path, status=1)
    assert "Nova's API cannot be asked for flavors" in result.stderr
    assert not path.exists()


def test_a_path_that_cannot_be_written(run: Command, tmp_path: Path) -> None:
    result = run("--placement", "embedded", "cloud", "snapshot", tmp_path / "no" / "x", status=1)
    assert "cannot be written" in result.stderr


def test_a_file_that_is_no_snapshot(save: Command) -> None:
    with pytest.raises(InvalidInput, match="give the whole file of cpu-tiers cloud snapshot"):
        read_snapshot(save("no json"))
