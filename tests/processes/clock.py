"""A time of day that jumps, for programs: by ``LD_PRELOAD`` of a library of our own (gcc)."""

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SECONDS = struct.Struct("q")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The time of day of the programs with :attr:`environment`.

    :param library: compiled from ``clock.c``.
    :param file: how many seconds the time of day is ahead. Each program has the file in its
        memory, so a jump is at the same time for all programs.
    """

    library: Path
    file: Path

    @classmethod
    def build(cls, folder: Path) -> "Clock":
        """Compile the library in a folder; the clock is right."""
        clock = cls(library=folder / "clock.so", file=folder / "clock")
        source = str(Path(__file__).with_suffix(".c"))
        command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", str(clock.library), source], check=True)
        clock.file.write_bytes(_SECONDS.pack(0))
        return clock

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a program follows the clock."""
        return {"LD_PRELOAD": str(self.library), "CLOCK_OFFSET": str(self.file)}

    def jump(self, seconds: int) -> None:
        """Set the clock so many seconds ahead of the real time of day."""
        with self.file.open("r+b") as file:
            file.write(_SECONDS.pack(seconds))
