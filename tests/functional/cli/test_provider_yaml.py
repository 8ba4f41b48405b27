"""``cpu-tiers inventory show -f provider-yaml``."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not installed

Command = Callable[..., Any]


def shares(total: int, ratio: float, reserved: int, most: int) -> dict[str, Any]:
    """Return the inventories of a provider.yaml."""
    fields = {"total": total, "reserved": reserved, "min_unit": 1, "max_unit": most}
    inventory = {**fields, "step_size": 1, "allocation_ratio": ratio}
    return {"additional": [{"CUSTOM_VCPU_SHARES": inventory}]}


ROOT = {"uuid": "$COMPUTE_NODE"}


@pytest.mark.parametrize(
    ("conf", "providers"),
    [
        pytest.param(
            "[DEFAULT]\ncpu_allocation_ratio = 6.5\nreserved_host_cpus = 2\n",
            [(ROOT, shares(6400, 6.5, 200, 6400))],
            id="64 x 100, and 2 x 100 reserved",
        ),
        pytest.param(
            "[DEFAULT]\ncpu_allocation_ratio = 1.0\n[compute]\ncpu_shared_set = 0-9\n"
            "cpu_dedicated_set = 10-63\n[libvirt]\nvcpu_share_multiplier = 1024\n",
            [(ROOT, shares(10240, 1.0, 0, 10000))],
            id="10 x 1024, of which a server has 10000 at most",
        ),
        pytest.param(
            "[DEFAULT]\ncpu_allocation_ratio = 1.0\n[libvirt]\nemulator_overhead_percent = 25\n",
            [(ROOT, shares(6400, 1.0, 1280, 6400))],
            id="a fifth of 6400 for QEMU, 25 / (100 + 25)",
        ),
        pytest.param(
            "[DEFAULT]\ncpu_allocation_ratio = 2.0\nreserved_host_cpus = 1\n"
            "[compute]\nenable_numa_reporting_to_placement = true\n",
            [
                ({"name": "compute1_NUMA0"}, shares(3200, 2.0, 100, 3200)),
                ({"name": "compute1_NUMA1"}, shares(3200, 2.0, 0, 3200)),
            ],
            id="32 x 100 on each NUMA node",
        ),
    ],
)
def test_provider_yaml(
    run: Command,
    save: Command,
    capabilities: str,
    conf: str,
    providers: list[tuple[dict[str, str], dict[str, Any]]],
) -> None:
    arguments = ("--capabilities", capabilities, "--hostname", "compute1")
    path = save(conf, "nova.conf")
    result = run("inventory", "show", *arguments, "--config-file", path, "-f", "provider-yaml")
    assert yaml.safe_load(result.stdout) == {
        "meta": {"schema_version": "1.0"},
        "providers": [
            {"identification": identification, "inventories": inventories}
            for identification, inventories in providers
        ],
    }
    assert ("Nova's own driver makes no providers of NUMA nodes" in result.stderr) == (
        "enable_numa" in conf
    )
    assert "cpu_allocation_ratio is not set" not in result.stderr


def test_settings_that_would_make_a_provider_yaml_wrong(
    run: Command, save: Command, capabilities: str
) -> None:
    arguments = ("--capabilities", capabilities, "--hostname", "compute1", "-f", "provider-yaml")
    reporting = save("[libvirt]\nreport_vcpu_shares = true\n", "nova.conf")
    result = run("inventory", "show", *arguments, "--config-file", reporting)
    assert "cpu_allocation_ratio is not set, so Nova keeps the ratio" in result.stderr
    assert "remove the option before you restart nova-compute" in result.stderr
    assert "[DEFAULT] initial_cpu_allocation_ratio.\n" in result.stdout
    dedicated = save("[compute]\ncpu_dedicated_set = 0-63\n", "dedicated.conf")
    result = run("inventory", "show", *arguments, "--config-file", dedicated, status=1)
    assert "no shared CPUs" in result.stderr
    assert result.stdout == ""
