"""A file with one JSON document a line, bounded in size, such as the decisions of nova-scheduler.

All threads and all processes of a service write the same file, and none waits for another: the
kernel appends a line as a whole. A writer that sees a part of another's line begins with a line
break, so that an empty line may stand between two documents. Only a full file needs a lock: the
lock keeps two writers from renaming the file twice. A writer that does not get the lock appends
its line to the full file.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20

_ROUNDS, _ROUND_SECONDS = 50, 0.01
"""How often a writer looks for another file in the place of a file of twice the size."""


def append(file: Path, document: Mapping[str, Any], *, max_mb: int) -> None:
    """Append a document as a line.

    A file that would grow over its size takes the name ``FILE.1`` first, and replaces the older
    file of this name. Only the user of the process may read a new file.

    :param max_mb: the largest size of the file in MiB. While a process is stopped that has the
        lock, the file may grow to twice the size.
    :raises OSError: the file cannot be written as a whole line, or is no regular file.
    """
    line = json.dumps(document, separators=(",", ":"), default=str).encode() + b"\n"
    descriptor = _open_with_room(file, len(line), max_mb * MEBIBYTE)
    try:
        size = os.fstat(descriptor).st_size
        # A full disk, the end of a process, or a writer at work may have left half a line.
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) != len(line):
            raise OSError(0, "the disk has no room for the line")
    finally:
        os.close(descriptor)


def _open_with_room(file: Path, length: int, most: int) -> int:
    """Return a descriptor of the file, after the rename of a full file.

    :param length: the length of a line, which even an empty file takes.
    :param most: the largest size.
    :raises OSError: the file cannot be opened, or is twice as large and nobody renames it.
    """
    for _ in range(_ROUNDS):
        descriptor = _open(file)
        size = os.fstat(descriptor).st_size
        if size == 0 or size + length <= most:
            return descriptor
        if not _rename(descriptor, file) and size + length <= 2 * most:
            return descriptor
        os.close(descriptor)
        time.sleep(_ROUND_SECONDS)
    raise OSError(0, "the file is full, and the process that renames it has stopped")


def _open(file: Path) -> int:
    # Without O_NONBLOCK, a pipe in place of the file would keep the process waiting.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    descriptor = os.open(file, flags, mode=0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "no regular file")
    return descriptor


def _rename(descriptor: int, file: Path) -> bool:
    """Rename the full file, and tell whether its name is free, or the name of another file.

    The lock belongs to the open file: it excludes threads as well as processes, and ends with
    the descriptor.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            file.replace(file.with_name(f"{file.name}.1"))
    except FileNotFoundError:  # another writer has renamed it just now
        return True
    except OSError as error:
        if isinstance(error, BlockingIOError):
            return False
        os.close(descriptor)
        raise
    return True
