"""Numbers as values of arguments."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress


def number_from(
    least: int, most: int, text: str, kind: Callable[[str], float] = float
) -> Callable[[str], float]:
    """Return a parser of numbers in a range, whose error says ``text`` of the range."""

    def parse(given: str) -> float:
        with suppress(ValueError):
            if least <= (number := kind(given)) <= most:
                return number
        raise ArgumentTypeError(f"give {text.format(least=least, most=most)}")

    return parse


def seconds_from(least: int) -> Callable[[str], float]:
    """Return a parser of seconds, at most an hour."""
    return number_from(least, 3600, "{least} to {most} seconds")


def whole_number_from(least: int, most: int) -> Callable[[str], float]:
    """Return a parser of whole numbers in a range."""
    return number_from(least, most, "a whole number from {least} to {most}", int)
