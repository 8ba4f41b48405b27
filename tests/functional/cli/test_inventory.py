"""``cpu-tiers inventory show``."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpu_tiers.model.names import VCPU_SHARES

Command = Callable[..., Any]


def test_inventory_show_has_the_specs_6400_shares(
    run: Command, save: Command, capabilities: str
) -> None:
    conf = save(
        "[DEFAULT]\ncpu_allocation_ratio = 4.0\nram_allocation_ratio = 1.5\n"
        "disk_allocation_ratio = 2.0\nreserved_host_memory_mb = 1024\n"
        "[libvirt]\nreport_vcpu_shares = true\n",
        "nova.conf",
    )
    arguments = ("--capabilities", capabilities, "--hostname", "compute1", "--config-file", conf)
    result = run("inventory", "show", *arguments, "--disk-gb", "500", "-f", "json")

    def inventory(total: int, ratio: float, reserved: int, most: int) -> dict[str, object]:
        fields = {"total": total, "reserved": reserved, "min_unit": 1, "max_unit": most}
        return {**fields, "step_size": 1, "allocation_ratio": ratio}

    assert json.loads(result.stdout) == [
        {
            "name": "compute1",
            "parent": None,
            "inventories": {
                "VCPU": inventory(64, 4.0, 0, 64),
                VCPU_SHARES: inventory(6400, 4.0, 0, 6400),
                "MEMORY_MB": inventory(262144, 1.5, 1024, 262144),
                "DISK_GB": inventory(500, 2.0, 0, 500),
            },
            "traits": [],
        }
    ]
    assert result.stderr == ""


def test_the_disk_is_measured_at_the_instances_path_with_a_message(
    run: Command, save: Command, capabilities: str, tmp_path: Path
) -> None:
    conf = save(f"[DEFAULT]\ninstances_path = {tmp_path}/not/yet\n", "nova.conf")
    arguments = ("--capabilities", capabilities, "--hostname", "h", "--config-file", conf)
    result = run("inventory", "show", *arguments, "-f", "json")
    expected = shutil.disk_usage(tmp_path).total // 2**30
    (root,) = json.loads(result.stdout)
    assert root["inventories"]["DISK_GB"]["total"] == expected
    assert f"DISK_GB is {expected}, the size of the file system of {tmp_path}" in result.stderr
