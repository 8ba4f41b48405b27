import pytest

from cpu_tiers.model.inventory import divide_reserved


@pytest.mark.parametrize(
    ("amount", "totals", "parts"),
    [
        (0, [], ()),
        (3, [8, 8], (2, 1)),
        (6, [1, 8], (1, 5)),
        (7, [8, 0, 8], (4, 0, 3)),
        (512, [4096, 100, 4096], (206, 100, 206)),
        pytest.param(20, [8, 8], (12, 8), id="4 more than there is: the first provider gets them"),
    ],
)
def test_divide_reserved(amount: int, totals: list[int], parts: tuple[int, ...]) -> None:
    assert divide_reserved(amount, totals) == parts
