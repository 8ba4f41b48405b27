"""Writing an output file as a whole: plans, metrics and pictures."""

import os
import shutil
from pathlib import Path


def write_output(path: str, content: bytes, *, private: bool = False) -> None:
    """Write a file as a whole, or leave the file as it was, for example on a full disk.

    The content is written to a new file in the same folder, and the new file then replaces the old
    file. So no reader sees a part of the content. A device or a pipe, for example ``/dev/stdout``,
    is written directly.

    :param private: only the user may read and write the file, whatever the old file allowed.
    :raises OSError: the file cannot be written.
    :raises ValueError: the path is no path.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    new = target.with_name(f"{target.name}.{os.getpid()}")
    mode = 0o600 if private else 0o666
    with open(new, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # some file systems notice a full disk only here
            if target.exists() and not private:
                shutil.copymode(target, new)
            new.replace(target)
        finally:  # also after Ctrl-C
            new.unlink(missing_ok=True)
