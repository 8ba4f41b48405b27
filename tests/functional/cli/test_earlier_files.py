"""Files of earlier versions of cpu-tiers, which docs/reference/versions.rst promises to read.

``tests/earlier`` has a snapshot of each version, as the code of that time wrote it for one cloud:
two hosts of 16 CPUs, and on one of them a server of 4 vCPUs.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.cloud_model.snapshot import VERSION

Command = Callable[..., Any]
EARLIER = Path(__file__).parents[2] / "earlier"
LACKS = {
    1: "flavors, states and groups of servers",
    2: "host, zone, image, image traits, migrations of the servers",
    3: "zone, image, image traits, migrations of the servers",
}
"""What Nova did not say when the snapshot was written, or no command asked it."""


def test_each_version_has_a_file() -> None:
    versions = [json.loads(path.read_text())["version"] for path in sorted(EARLIER.iterdir())]
    assert versions == list(range(1, VERSION + 1))


@pytest.mark.parametrize("version", sorted(LACKS))
def test_a_snapshot(run: Command, version: int) -> None:
    snapshot = ("--snapshot", EARLIER / f"snapshot-{version}.json", "-f", "json")
    # Each host has 64,000 MiB without 512 that are reserved, the server 8,000, and gold 2,000.
    (row,) = json.loads(run("capacity", "--flavor", "gold", *snapshot).stdout)
    assert row["more"] == 63_488 // 2_000 + 55_488 // 2_000
    plan = json.loads(run("plan", "drain", "kept", *snapshot).stdout)
    (move,) = plan["moves"]
    assert (move["from"], move["to"]) == ("kept", "drained")
    assert plan["unknown"][0].startswith(LACKS[version])
