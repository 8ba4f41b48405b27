"""Count the lines of the functions of cpu-tiers that a flow enters, which its reader reads.

A line counts once, however often its function is called. Docstrings count, because a reader reads
them. Module and class bodies do not count, nor does what a service does at its start. Nova has to
be installed (dependency group ``bench``). ``--list`` prints the lines of each file, most first.
docs/contributor/house.rst says what holds the lines beyond a goal.
"""

import argparse
import contextlib
import inspect
import multiprocessing
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType

from entered_flows import flows

import cpu_tiers

OURS = str(Path(cpu_tiers.__file__).parent)
NOT_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Bodies of modules, and parts of functions, which count with their functions."""

FORK = multiprocessing.get_context("fork")

LIMITS = {
    "a multiplier to a query": (520, 520),
    "the scores of the weigher": (800, 950),
    "a host to its inventories, with NUMA nodes": (1450, 1450),
    "explain, from a snapshot": (3000, 3650),
    "explain, live": (3000, 3950),
    "plan room": (2850, 4150),
    "host audit": (3850, 4250),
}
"""The goal of each flow, and the lines that fail: a flow that grows is a decision.

The goals of the last two flows are their lines before a plan asked Nova what it may move. The
limits of both were raised for what Nova's filters and pools refuse to a plan, and for what the
audit names: the CPU sets, and each thief of CPU time.
"""


@contextlib.contextmanager
def entered(codes: set[CodeType]) -> Iterator[None]:
    """Add the code of each function of cpu-tiers that the context enters, in all threads."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def lines_by_file(codes: set[CodeType]) -> Counter[str]:
    """Return the number of lines of functions by file; an inner function counts with its outer."""
    lines: dict[str, set[int]] = {}
    for code in codes:
        if code.co_name in NOT_FUNCTIONS or not code.co_flags & inspect.CO_NEWLOCALS:
            continue
        source, first = inspect.getsourcelines(code)
        if source[0].lstrip().startswith("class "):  # the body of a class is a code, too
            continue
        name = str(Path(code.co_filename).relative_to(OURS))
        lines.setdefault(name, set()).update(range(first, first + len(source)))
    return Counter({name: len(numbers) for name, numbers in lines.items()})


def lines_of(flow: Callable[[], object]) -> Counter[str]:
    """Return the lines of a flow by file; its process is its own, because caches hide lines.

    :raises EOFError: the flow failed, and its process has printed the error.
    """
    reader, writer = FORK.Pipe(duplex=False)

    def count() -> None:
        codes: set[CodeType] = set()
        with entered(codes):
            flow()
        writer.send(lines_by_file(codes))

    process = FORK.Process(target=count)
    process.start()
    writer.close()
    lines: Counter[str] = reader.recv()
    process.join()
    return lines


def main() -> int:
    """Print the lines of each flow beside its goal; return 1 if a flow is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the lines of each file")
    wants_files = parser.parse_args().list
    is_over = False
    with tempfile.TemporaryDirectory() as folder:
        for name, flow in flows(Path(folder)):
            lines = lines_of(flow)
            number, (goal, limit) = lines.total(), LIMITS[name]
            is_over |= number > limit
            verdict = "OVER" if number > limit else "missed" if number > goal else "met"
            print(f"  {name:<44} {number:5}  goal {goal}, limit {limit}: {verdict}")
            for file, part in lines.most_common() if wants_files else ():
                print(f"    {part:5}  {file}")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
