"""``cpu-tiers cloud requests`` without Nova, and the flavors that it writes.

``tests/nova/commands/test_stored_flavors.py`` runs the command beside Nova.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.cloud_requests import _documents
from cpu_tiers.tools.frame.documents import read_flavors

Command = Callable[..., Any]


def test_the_command_needs_nova(run: Command, tmp_path: Path) -> None:
    files = tmp_path / "requests.csv", tmp_path / "flavors.json"
    result = run("cloud", "requests", *files, status=1)
    assert "cloud requests needs Nova" in result.stderr
    assert not any(file.exists() for file in files)
    assert "REQUESTS.csv" in run("cloud", "requests", status=2).stderr


def test_simulate_reads_the_flavors(save: Command) -> None:
    flavor = Flavor(
        name="gold",
        vcpus=2,
        memory_mb=512,
        root_gb=3,
        ephemeral_gb=4,
        swap_mb=5,
        extra_specs={"quota:cpu_shares_multiplier": "100"},
    )
    path = save(json.loads(json.dumps(list(_documents([flavor])))), "flavors.json")
    faults = FaultList()
    assert list(read_flavors(str(path), faults)) == [flavor]
    assert not faults.faults
