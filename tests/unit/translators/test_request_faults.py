"""The faults of a new server: of its keys, and of its request groups."""

from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.request_faults import request_faults

GROUPS = {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_B": "1"}


@pytest.mark.parametrize(
    ("specs", "faulty"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"quota:cpu_shares_multiplier": "100"}, [], id="a tier"),
        pytest.param({**GROUPS, "group_policy": "none"}, [], id="two groups and their policy"),
        pytest.param(GROUPS, ["group_policy"], id="two groups without a policy"),
        pytest.param({"quota:cpu_shares": "20000"}, ["quota:cpu_shares"], id="shares, once"),
        pytest.param(
            {**GROUPS, "quota:cpu_shares": "0", "hw:numa_nodes": "0"},
            ["hw:numa_nodes", "quota:cpu_shares", "group_policy"],
            id="faults of keys and of groups",
        ),
    ],
)
def test_faults(specs: dict[str, Any], faulty: list[str]) -> None:
    faults = request_faults(
        ServerRequest(Flavor(name="f", vcpus=2, memory_mb=2048, extra_specs=specs))
    )
    assert len(faults) == len(faulty)
    for fault, key in zip(faults, faulty, strict=True):
        assert key in str(fault)
