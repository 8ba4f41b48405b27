"""Which answers are empty. test_lacking_constraints has the queries that tell the reason."""

import pytest

from cpu_tiers.nova.scheduler.reasons.empty_answers import is_empty


@pytest.mark.parametrize(
    ("answer", "empty"),
    [
        pytest.param(([], {}, "1.36"), True, id="no candidate"),
        pytest.param(([{}], {}, "1.36"), False, id="a candidate"),
        pytest.param(None, False, id="no connection"),
        pytest.param((None, None, None), False, id="refused"),
    ],
)
def test_empty(answer: object, empty: bool) -> None:
    assert is_empty(answer) is empty
