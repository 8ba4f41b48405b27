"""The file with the decisions of nova-scheduler: one JSON document a line, bounded in size."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oslo_concurrency import lockutils

MEBIBYTE = 2**20


def append(file: Path, document: Mapping[str, Any], *, max_mb: int) -> None:
    """Append a document as a line. All processes of nova-scheduler may write the same file.

    A file that would grow over its size takes the name ``FILE.1`` first, and replaces the older
    file of this name. Only the user of nova-scheduler may read a new file.

    :param max_mb: the largest size of the file in MiB.
    :raises OSError: the file cannot be written.
    """
    line = json.dumps(document, separators=(",", ":"), default=str).encode() + b"\n"
    with lockutils.external_lock(f"{file.name}.lock", lock_path=str(file.parent)):
        descriptor = _open(file)
        try:
            if 0 < os.fstat(descriptor).st_size > max_mb * MEBIBYTE - len(line):
                os.close(descriptor)
                file.replace(file.with_name(f"{file.name}.1"))
                descriptor = _open(file)
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _open(file: Path) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode=0o600)
