"""The lines that a thread of nova-scheduler writes beside its answers."""

import time
from pathlib import Path


def lines_of(file: Path, number: int) -> list[str]:
    """Return the lines of a file without empty lines, when there are so many or after a time."""
    lines: list[str] = []
    for _ in range(500):
        lines = [line for line in file.read_text().splitlines() if line] if file.exists() else []
        if len(lines) >= number:
            break
        time.sleep(0.02)
    return lines
