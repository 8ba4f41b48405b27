"""Every reader, with the largest number in each field, takes less than 512 MB.

A process of its own, so that its limit of memory is that of a reader alone.
"""

import multiprocessing
import random
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.tools.frame.app import CpuTiersApp
from tests.draws import SEED, part
from tests.fuzz.largest import AMOUNT, FLOAT, LARGEST, with_largest_numbers
from tests.fuzz.readers import READERS

MOST_BYTES = 512 * 10**6
MOST_SECONDS = 20
"""CPU time for one input: none takes two, and what grows with a number takes minutes."""

OF_A_CLOUD = ("requests", "snapshot")
"""Whole commands read these. A simulation of thousands of dedicated vCPUs takes minutes, but not
much memory."""

SIZES = re.compile(rb'"(total|VCPU|vcpus|memory_mb)": [0-9]+')
"""The fields of a snapshot that are tried in each run, each in all places."""


def inputs(name: str) -> Iterator[bytes]:
    """Yield the inputs with all numbers exchanged, and a part of the others."""
    numbers = (AMOUNT, FLOAT) if name in OF_A_CLOUD else LARGEST
    for seed in READERS[name].seeds:
        for field in {match[1] for match in SIZES.finditer(seed)}:
            yield re.sub(rb'"%s": [0-9]+' % field, b'"%s": %s' % (field, AMOUNT), seed)
        for number in numbers:
            every, *single = with_largest_numbers(seed, number)
            yield from (every, *random.Random(SEED).sample(single, part(len(single))))


def read_all(name: str) -> None:
    """Read all inputs of a reader with the limits; an error that is none of cpu-tiers ends it."""
    reader = READERS[name]
    for seed in reader.seeds:
        reader.read(seed)  # what the reader imports counts before
    status = Path("/proc/self/status").read_text()
    used = int(status.partition("VmData:")[2].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + MOST_BYTES,) * 2)
    for content in inputs(name):
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # the signal ends the process
        try:
            reader.read(content)
        except CpuTiersError:
            pass
        except BaseException as error:
            raise AssertionError(content) from error


@pytest.mark.parametrize("name", READERS)
def test_a_number_of_a_few_bytes_takes_no_memory(name: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=read_all, args=[name])
    process.start()
    process.join()
    assert process.exitcode == 0, "see the traceback; -27 is the limit of time"


@pytest.mark.parametrize(
    ("error", "text"), [(MemoryError(), "out of memory: "), (AssertionError(), "AssertionError()")]
)
def test_an_error_that_says_nothing_is_named(
    error: Exception, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    CpuTiersApp().clean_up(None, 1, error)
    assert text in caplog.text
