import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor


@pytest.mark.parametrize("vcpus", [0, -1, 2**31, 10**30, "4", 4.0, True, None])
def test_vcpus_are_a_whole_number_above_0(vcpus: object) -> None:
    with pytest.raises(InvalidInput, match=r"flavor f, vcpus: got .*from 1 to 2147483647"):
        Flavor(name="f", vcpus=vcpus, memory_mb=1)  # type: ignore[arg-type]  # that is the test


def test_every_fault_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        Flavor(name="f", vcpus=0, memory_mb=0, root_gb=-1, ephemeral_gb=-1, swap_mb=-1)
    wheres = [fault.where.split(", ")[1] for fault in caught.value.faults]
    assert wheres == ["vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb"]
