"""Tables that fit the terminal. Widths are counted by hand."""

import io
from argparse import Namespace

import pytest

from cpu_tiers.tools.frame.formatting import FittingTable, FormattedValue
from cpu_tiers.tools.frame.terminal import terminal_columns

NAMES = ("host", "more", "why")
ROWS = (
    ("node-1", 12, "memory ends after twelve servers"),
    ("node-22", 0, FormattedValue(["VCPU", "MEMORY_MB"], "\n".join)),
)


def table(columns: int | None, monkeypatch: pytest.MonkeyPatch, max_width: int = 0) -> list[str]:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    out = io.StringIO()
    arguments = Namespace(max_width=max_width, fit_width=False, print_empty=False)
    FittingTable().emit_list(NAMES, ROWS, out, arguments)
    return out.getvalue().splitlines()


# 7 + 4 + 32 characters, and 10 of borders.
WIDE = [
    "+---------+------+----------------------------------+",
    "| host    | more | why                              |",
    "+---------+------+----------------------------------+",
    "| node-1  |   12 | memory ends after twelve servers |",
    "| node-22 |    0 | VCPU                             |",
    "|         |      | MEMORY_MB                        |",
    "+---------+------+----------------------------------+",
]


def test_a_table_in_a_pipe_is_as_wide_as_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(None, monkeypatch) == WIDE


@pytest.mark.parametrize("columns", [53, 200])
def test_a_table_that_fits_is_unchanged(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    assert table(columns, monkeypatch) == WIDE


def test_a_column_is_wrapped_at_words(monkeypatch: pytest.MonkeyPatch) -> None:
    # 37 - 10 - 7 - 4 = 16 for the last column, which has no room for "after twelve servers".
    lines = table(37, monkeypatch)
    assert max(map(len, lines)) <= 37
    assert [line.split("|")[-2].strip() for line in lines if "|" in line] == [
        *("why", "memory ends", "after twelve", "servers", "VCPU", "MEMORY_MB")
    ]


def test_a_word_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    # The longest words have 7, 4 and 9 characters: with 10 of borders the least width is 30.
    assert max(map(len, table(30, monkeypatch))) == 30
    assert table(29, monkeypatch) == [
        "host  node-1",
        "more  12",
        "why   memory ends after",
        "      twelve servers",
        "",
        "host  node-22",
        "more  0",
        "why   VCPU",
        "      MEMORY_MB",
    ]


def test_the_argument_for_the_width_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(map(len, table(200, monkeypatch, max_width=37))) <= 37


def test_a_word_that_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    arguments = Namespace(max_width=0, fit_width=False, print_empty=False)
    FittingTable().emit_one(("resources", "n"), ("A" * 30, None), out, arguments)
    # 20 - 11 is less than 20, so that the value is below its name.
    assert out.getvalue().splitlines() == [
        "resources",
        "  " + "A" * 18,
        "  " + "A" * 12,
        "n",
        "  None",
    ]


def test_letters_that_take_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "19")
    out = io.StringIO()
    arguments = Namespace(max_width=0, fit_width=False, print_empty=False)
    FittingTable().emit_one(("name",), ("金銀銅" * 2,), out, arguments)
    assert out.getvalue().splitlines() == ["name", "  金銀銅金銀銅"]


@pytest.mark.parametrize("columns", ["0", "-3", "wide", "9" * 5000])
def test_a_width_that_is_none(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_columns(io.StringIO()) is None


def test_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "3")
    out = io.StringIO()
    arguments = Namespace(max_width=0, fit_width=False, print_empty=False)
    FittingTable().emit_list(NAMES, (), out, arguments)
    assert out.getvalue() == "\n"


def test_names_of_a_cloud_do_not_control_the_terminal() -> None:
    out = io.StringIO()
    given = Namespace(max_width=0, fit_width=False, print_empty=False)
    FittingTable().emit_list(("host",), [("\x1b[2J\rb",)], out, given)
    assert "| \\x1b[2J\\rb |" in out.getvalue()
