"""The name that was meant."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.translators import ServerRequest, translate


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("resources:VCPUS", "1", "unknown resource class 'VCPUS'; did you mean VCPU?"),
        ("resources:MEMORY", "1", "unknown resource class 'MEMORY'; did you mean MEMORY_MB?"),
        ("trait:HW_CPU_X86_AVX512", "required", "; did you mean HW_CPU_X86_AVX512"),
        ("resources:PENNIES", "1", "unknown resource class 'PENNIES'; use one of"),
    ],
)
def test_classes_and_traits(key: str, value: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        translate(ServerRequest(Flavor(name="f", vcpus=1, memory_mb=1, extra_specs={key: value})))
