import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet


@pytest.mark.parametrize(
    ("text", "cpus", "shortest"),
    [
        ("0", {0}, "0"),
        ("0-3,8,^2", {0, 1, 3, 8}, "0-1,3,8"),
        (" 4 , 1 - 2 ", {1, 2, 4}, "1-2,4"),
        ("^1,0-2", {0, 2}, "0,2"),
        (",1,,2,", {1, 2}, "1-2"),
        ("5-5,5", {5}, "5"),
        ("0-7,^2-4", {0, 1, 5, 6, 7}, "0-1,5-7"),
    ],
)
def test_parse_and_format(text: str, cpus: set[int], shortest: str) -> None:
    parsed = CpuSet.parse(text, where="here")
    assert parsed == CpuSet(cpus)
    assert str(parsed) == shortest


def test_exclusions_alone_are_taken_from_every_cpu() -> None:
    assert CpuSet.parse("^0-1", where="here", every=frozenset(range(4))) == CpuSet({2, 3})


@pytest.mark.parametrize(
    "text",
    ["", ",", "a", "3-1", "-1", "1-", "^", "0,^0", "65536", "0-99999999999", "1.5", "0," * 40000],
)
def test_malformed(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^here: "):
        CpuSet.parse(text, where="here")
