"""Gives a million mutated inputs to every reader of cpu-tiers: ``tox -e fuzz``.

atheris (libFuzzer) draws the inputs, and keeps each that reaches new code of cpu-tiers.
A reader fails with an exception that is no :class:`CpuTiersError`, after a second of CPU for one
input, and above a limit of memory.
"""

import argparse
import io
import os
import re
import resource
import sys
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import NoReturn

import atheris

from cpu_tiers.errors import CpuTiersError
from tests.draws import SEED
from tests.fuzz.mutation import mutate

with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["cpu_tiers"]):
    from tests.fuzz.readers import READERS, Reader

MOST_SECONDS = 1.0
"""CPU time for one input, of at most ``MOST_BYTES`` bytes."""

MOST_BYTES = 4096
MOST_MEMORY_MB = 512
_HANGS_SECONDS = 120
"""Real time for one input: the machine may be busy."""


class TooSlow(Exception):
    """A reader took too long for an input."""


def one_input(reader: Reader, content: bytes) -> None:
    """Give an input to a reader.

    :raises TooSlow: the reader took more than ``MOST_SECONDS`` of CPU.
    """
    start = time.process_time()
    try:
        reader.read(content)
    except CpuTiersError as error:
        str(error).encode()  # a terminal must be able to print the message
    if (seconds := time.process_time() - start) > MOST_SECONDS:
        raise TooSlow(f"{seconds:.1f} s of CPU")


def fuzz(name: str, runs: int, seed: int, folder: Path) -> NoReturn:
    """Give inputs to a reader in this process, and end the process."""
    reader, corpus = READERS[name], folder / name
    corpus.mkdir()
    for number, content in enumerate(reader.seeds):
        (corpus / str(number)).write_bytes(content)
    log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for content in reader.seeds:
        reader.read(content)  # an error here is a mistake in the seed

    def changed(content: bytes, most_bytes: int, drawn: int) -> bytes:
        if drawn % 2:
            return mutate(content, most_bytes, drawn)
        return bytes(atheris.Mutate(content, most_bytes))

    options = {
        "runs": runs,
        "seed": seed,
        "max_len": MOST_BYTES,
        "timeout": _HANGS_SECONDS,
        "rss_limit_mb": MOST_MEMORY_MB,
        "artifact_prefix": folder / f"{name}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    arguments = [name, *(f"-{key}={value}" for key, value in options.items()), str(corpus)]
    atheris.Setup(arguments, lambda content: one_input(reader, content), custom_mutator=changed)
    atheris.Fuzz()
    raise SystemExit


def report(name: str, folder: Path, status: int, usage: resource.struct_rusage) -> bool:
    """Print a line about a reader, and the end of its log after a failure; tell if it passed."""
    log = (folder / f"{name}.log").read_text(errors="replace")
    inputs = re.search(r"number_of_executed_units: (\d+)", log)
    seconds, memory_mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024
    end = "passed" if status == 0 else "FAILED"
    count = f"{int(inputs[1]):9,}" if inputs else "        ?"
    print(f"{name:14} {count} inputs {seconds:6.0f} s {memory_mb:5} MiB {end}", flush=True)  # noqa: T201
    if status:
        print(log[-4000:])  # noqa: T201
        for path in folder.glob(f"{name}-*"):
            print(f"repeat it: python -m tests.fuzz --reader {name} --input {path}")  # noqa: T201
    return status == 0


def run(names: list[str], runs: int, seed: int, jobs: int) -> int:
    """Give inputs to readers, each in a process of its own; return the exit status."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    total = sum(READERS[name].weight for name in names)
    waiting, running, passed = list(names), dict[int, str](), True
    print(f"{runs:,} inputs from seed {seed}; logs and findings in {folder}", flush=True)  # noqa: T201
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop(0)
            if not (child := os.fork()):
                fuzz(name, round(runs * READERS[name].weight / total), seed, folder)
            running[child] = name
        child, status, usage = os.wait4(-1, 0)
        passed &= report(running.pop(child), folder, status, usage)
    return 0 if passed else 1


def main() -> int:
    """Read the arguments, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--reader", action="append", choices=READERS, help="only this reader")
    parser.add_argument("--runs", type=int, default=1_000_000, help="inputs of all readers")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="default: CPU_TIERS_SEED, or the day"
    )
    parser.add_argument("--jobs", type=int, default=2, help="readers at a time")
    parser.add_argument(
        "--input", type=Path, help="give this file to the reader, and nothing else"
    )
    arguments = parser.parse_args()
    names = arguments.reader or list(READERS)
    if arguments.input:
        one_input(READERS[names[0]], arguments.input.read_bytes())
        return 0
    return run(names, arguments.runs, arguments.seed, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
