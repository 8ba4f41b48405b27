"""Tracebacks in the logs of Nova that end in the code of cpu-tiers."""

import re
from collections.abc import Iterable, Iterator

_LINE = re.compile(r"^\S+ \S+ \d+ (?:ERROR|CRITICAL) (\S+) (?:\[[^]]*\] )*(.*)$")
_FRAME = re.compile(r'^\s+File "([^"]+)", line \d+, in \S+')


def of_cpu_tiers(lines: Iterable[str]) -> Iterator[str]:
    """Yield the last line of each traceback whose innermost frame is in ``cpu_tiers``.

    Other tracebacks only pass through the wrappers of cpu-tiers.
    """
    frame = ""
    for line in lines:
        match = _LINE.match(line)
        text = match[2] if match else line.rstrip("\n")
        if found := _FRAME.match(text):
            frame = found[1]
        elif frame and text and not text.startswith((" ", "^")):
            if "/cpu_tiers/" in frame:
                yield f"{frame}: {text}"
            frame = ""
