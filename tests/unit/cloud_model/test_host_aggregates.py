"""Isolation and multipliers by the metadata of host aggregates."""

from collections.abc import Mapping

import pytest

from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotAggregate


def aggregates(*all_metadata: Mapping[str, str]) -> HostAggregates:
    """Return aggregates 0, 1, ... of the host h; the last also has the host i."""
    last = len(all_metadata) - 1
    return HostAggregates(
        {
            str(number): SnapshotAggregate(
                name=f"rack {number}",
                hosts=("h", "i") if number == last else ("h",),
                metadata=each,
            )
            for number, each in enumerate(all_metadata)
        }
    )


MMX, SGX = {"trait:HW_CPU_X86_MMX": "required"}, {"trait:HW_CPU_X86_SGX": "required"}


@pytest.mark.parametrize(
    ("traits", "isolated"),
    [
        pytest.param([], {"0", "1", "2"}, id="a server without traits"),
        pytest.param(["HW_CPU_X86_MMX"], {"1", "2"}, id="each trait of an aggregate is needed"),
        pytest.param(["HW_CPU_X86_MMX", "HW_CPU_X86_SGX"], set(), id="further traits do not harm"),
    ],
)
def test_isolated_aggregates(traits: list[str], isolated: set[str]) -> None:
    """The documented example of Nova's ``get_non_matching_by_metadata_keys``, and two more."""
    others = {"trait:CUSTOM_A": "forbidden"}, {"availability_zone": "required"}
    assert aggregates(MMX, SGX, {**MMX, **SGX}, *others).isolated(traits) == isolated


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        pytest.param(["-5.0"], {"h": -5.0, "i": -5.0}, id="all hosts of the aggregate"),
        pytest.param(["2", "0.5"], {"h": 0.5, "i": 0.5}, id="the smallest number"),
        pytest.param(["1", "many"], {}, id="a malformed number: nova.conf, also for h"),
    ],
)
def test_multipliers(values: list[str], numbers: dict[str, float]) -> None:
    key = "ram_weight_multiplier"
    found = aggregates(*({key: value} for value in values)).multipliers(key)
    assert found == numbers
    assert HostAggregates().multipliers(key) == {}


def test_names_of_constraints() -> None:
    two = aggregates({}, {})
    assert two.names_in("member_of=in:0,9") == "aggregate 9 or rack 0"
    assert two.names_in("!member_of=1") == "!aggregate rack 1"
    assert two.names_in("in:0,1") == "in:0,1"
