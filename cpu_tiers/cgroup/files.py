"""The files of /proc and /sys: the seam to the kernel."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpu_tiers.errors import Fault

VANISHED = (FileNotFoundError, ProcessLookupError, NotADirectoryError)
"""What reading of a process or a cgroup that is gone raises."""


class Files:
    """Files by their absolute path, below a root that is ``/`` but for tests.

    :param faults: what could not be read, in the order in which it was tried.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        """Begin without a fault."""
        self._root = root
        self.faults: list[Fault] = []

    def read(self, path: str) -> str:
        """Return the content of a file.

        :raises OSError: there is none, or it is not ours to read.
        """
        content = (self._root / path.lstrip("/")).read_bytes()
        return content.decode("utf-8", "surrogateescape")

    def folders(self, path: str) -> list[str]:
        """Return the names of the folders in a folder.

        :raises OSError: there is none, or it is not ours to read.
        """
        folder = self._root / path.lstrip("/")
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())

    @contextmanager
    def noted(self, path: str) -> Iterator[None]:
        """Note what cannot be read there, and go on; what is gone is not noted."""
        try:
            yield
        except VANISHED:
            pass
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            allowed = "run the audit as root on the compute host"
            where = getattr(error, "filename", None) or path
            self.faults.append(Fault(str(where), f"cannot be read ({reason})", allowed))
