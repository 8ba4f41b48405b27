"""Numbers as values of arguments."""

from argparse import ArgumentParser, ArgumentTypeError

import pytest

from cpu_tiers.tools.frame.nova_conf_command import MOST_JOBS
from cpu_tiers.tools.frame.numbers import seconds_from, whole_number_from


@pytest.mark.parametrize("text", ["0", "11", "-1", "1.0", "two", "", "9" * 5000])
def test_what_is_no_whole_number_of_a_range_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^give a whole number from 1 to 10$"):
        whole_number_from(1, 10)(text)


def test_the_ends_of_a_range_belong_to_the_range() -> None:
    assert [whole_number_from(1, 10)(text) for text in ("1", "10")] == [1, 10]
    assert [seconds_from(0)(text) for text in ("0", "0.5", "3600")] == [0, 0.5, 3600]


def test_a_refusal_says_the_argument(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    parser.add_argument("--jobs", type=whole_number_from(1, MOST_JOBS))
    with pytest.raises(SystemExit):
        parser.parse_args(["--jobs", "9" * 5000])
    assert "argument --jobs: give a whole number from 1 to 10" in capsys.readouterr().err
