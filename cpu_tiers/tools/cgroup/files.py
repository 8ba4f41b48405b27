"""Read files of /proc and /sys. Tests replace the root folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpu_tiers.errors import Fault

MAX_BYTES = 16 * 1024**2
"""The longest file that is read. The arguments of a process have up to 6 MiB (execve(2))."""

_BLOCK = 2**16

VANISHED = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
"""The errors that reading raises after the process or the cgroup has ended."""


class Files:
    """Files by their absolute path, below a root folder. The root is ``/`` except in tests.

    Each method raises an :exc:`OSError` if there is no such path, or if the user may not read it.

    :ivar faults: the files that could not be read, in the order of the attempts.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._prefix = str(root).rstrip("/")
        self.faults: list[Fault] = []

    def read(self, path: str) -> str:
        """Return the content of a file.

        :raises ValueError: the file is longer than ``MAX_BYTES``.
        """
        content = _read(f"{self._prefix}/{path.lstrip('/')}")
        if len(content) > MAX_BYTES:
            raise ValueError(f"longer than {MAX_BYTES} bytes")
        # The command line of a process may contain any bytes.
        return content.decode("utf-8", "surrogateescape")

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders in a folder."""
        folder = self._root / path.lstrip("/")
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())

    def names(self, path: str) -> list[str]:
        """Return the names of the files and the folders in a folder, without an order."""
        return os.listdir(self._root / path.lstrip("/"))  # noqa: PTH208  # iterdir is slower

    def target(self, path: str) -> str:
        """Return the path to which a symbolic link points."""
        return str((self._root / path.lstrip("/")).readlink())

    @contextmanager
    def noted(self, path: str) -> Iterator[None]:
        """Suppress the error of a block that cannot read a file, and add a fault instead.

        A process or a cgroup that has ended causes no fault.
        """
        try:
            yield
        except VANISHED:  # the guest was stopped after it was listed
            pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            allowed = "run the command as root on the compute host"
            where = getattr(error, "filename", None) or path
            self.faults.append(Fault(str(where), f"cannot be read ({reason})", allowed))


def _read(path: str) -> bytes:
    """Return the content of a file, or its first bytes if the file is too long.

    A watch reads a thousand files every few seconds. A file object would take twice the time.
    """
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = block = os.read(number, _BLOCK)
        while block and len(content) <= MAX_BYTES:
            block = os.read(number, _BLOCK)
            content += block
        return content
    finally:
        os.close(number)
