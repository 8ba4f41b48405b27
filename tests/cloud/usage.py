"""Prints the memory and descriptors of each running program of this host's supervisor: JSON.

A program counts with its children. Memory is the proportional set size (PSS) in MB, which counts
shared pages once, and the resident set size (RSS). Runs in the cloud, with the Python of its
services. Uses nothing of cpu-tiers.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

_LINE = re.compile(r"^(\S+)\s+RUNNING\s+pid (\d+)", re.MULTILINE)
_KB = re.compile(r"^(Rss|Pss):\s+(\d+) kB", re.MULTILINE)


def children() -> dict[int, list[int]]:
    """Return the children of each process."""
    found: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        found.setdefault(parent, []).append(int(path.parent.name))
    return found


def family(pid: int, below: dict[int, list[int]]) -> Iterator[int]:
    """Yield a process and all below it."""
    yield pid
    for child in below.get(pid, ()):
        yield from family(child, below)


def usage(pids: list[int]) -> dict[str, float]:
    """Return what processes use in sum."""
    found = {"pid": pids[0], "Rss": 0.0, "Pss": 0.0, "fds": 0}
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            found["fds"] += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            continue
        for name, amount in _KB.findall(text):
            found[name] += int(amount) / 1000
    return found


if __name__ == "__main__":
    states = subprocess.run(
        ["supervisorctl", "status"], capture_output=True, text=True, check=False
    )
    below = children()
    print(  # noqa: T201
        json.dumps(
            {
                name: usage(list(family(int(pid), below)))
                for name, pid in _LINE.findall(states.stdout)
            }
        )
    )
