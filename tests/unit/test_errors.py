import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, Fault, FaultList, InvalidInput, read_each


def fault(number: int = 0, given: str = "x") -> Fault:
    return Fault(where=f"place {number}", given=given, allowed="mend it")


def test_a_fault_is_a_single_line_without_terminal_commands() -> None:
    assert str(fault(given="a\nb\x1b[31m\u202e")) == ("place 0: a\\nb\\x1b[31m\\u202e; mend it")


def test_a_fault_is_short() -> None:
    assert len(str(fault(given="x" * 100_000))) < 400


def test_a_message_has_twenty_lines_and_says_how_many_more() -> None:
    error = InvalidInput(fault(n) for n in range(22))
    assert len(error.faults) == 22
    assert str(error).splitlines()[18:] == [
        "place 18: x; mend it",
        "place 19: x; mend it",
        "and 2 more faults",
    ]


def test_gathered_faults_come_once_and_keep_the_class() -> None:
    faults = FaultList()
    for _ in range(2):
        with faults:
            raise ConflictingExtraSpecs([fault(1)])
    with pytest.raises(ConflictingExtraSpecs) as caught:
        faults.raise_if_any()
    assert caught.value.faults == (fault(1),)


def test_faults_of_several_kinds_are_invalid_input() -> None:
    faults = FaultList()
    with faults:
        raise ConflictingExtraSpecs([fault(1)])
    faults.add("place 2", "x", "mend it")
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any()
    assert type(caught.value) is InvalidInput
    assert caught.value.faults == (fault(1), fault(2))


def test_foreign_errors_pass() -> None:
    with pytest.raises(KeyError), FaultList():
        raise KeyError


def test_no_fault_no_error() -> None:
    FaultList().raise_if_any()


def test_each_text_is_read_and_all_faults_come_together() -> None:
    def number(text: str) -> int:
        if not text.isdigit():
            raise InvalidInput.of(text, "no number", "give a number")
        return int(text)

    assert read_each(number, ["1", "2"]) == (1, 2)
    with pytest.raises(InvalidInput) as caught:
        read_each(number, ["a", "1", "b"])
    assert [each.where for each in caught.value.faults] == ["a", "b"]
