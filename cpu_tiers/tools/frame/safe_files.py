"""Files in folders of other users, for the commands that may run as root.

Writing follows no link of another user, and replaces a link in place of its target. Reading
accepts a file only if no other user could have written the file.
"""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cpu_tiers.errors import InvalidInput

MAX_BYTES = 16 * 1024**2
"""The longest configuration file that is read."""

_NEW = ".cpu-tiers-"
_YOUNG = 10.0
"""Seconds in which a new file is not locked yet, perhaps."""

_MOST_LINKS = 40
"""So many links are followed on the way to a file, as by the kernel."""


def write_output(
    path: str, content: bytes, *, private: bool = False, mode: int | None = None
) -> None:
    """Write a file as a whole, or leave the file as it was, for example on a full disk.

    The content is written to a new file in the same folder, and the new file then replaces the old
    file, or the link of this name. So no reader sees a part of the content. A device or a pipe of
    root or of the user, for example ``/dev/stdout``, is written directly.

    :param private: only the user may read and write the file, whatever the old file allowed.
    :param mode: the permissions of the file; ``None`` for those of the old file.
    :raises InvalidInput: the file cannot be written, or another user made a link on the way.
    """
    parent = Path(path).absolute().parent
    try:
        if not Path(path).name:
            raise ValueError("it has no name")
        folder = _opened(parent, _check_link)
        try:
            _write(folder, Path(path).name, content, 0o600 if private else mode)
        finally:
            os.close(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not parent.is_dir():
            reason = f"there is no folder {parent}"
        given = f"cannot be written ({reason})"
        raise InvalidInput.of(path, given, "name another file") from error


def check_owner(path: str, users: Collection[int]) -> None:
    """Check that only root and some users could write a file, its folders and the links to it.

    :param path: a regular file, or a folder, whose ``*.conf`` are checked as well.
    :param users: user ids.
    :raises InvalidInput: another user could, or the file is too long, or cannot be read.
    """

    def check(status: os.stat_result) -> None:
        if status.st_uid not in {0, *users}:
            raise PermissionError(0, f"user {status.st_uid} owns it or a part of its path")
        sticky = status.st_mode & stat.S_ISVTX
        if status.st_mode & stat.S_IWOTH and not sticky and not stat.S_ISLNK(status.st_mode):
            raise PermissionError(0, "every user may write it or a part of its path")

    try:
        descriptor = _opened(Path(path), check)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            for each in sorted(Path(path).glob("*.conf")):
                check_owner(str(each), users)
        elif not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise PermissionError(0, f"no regular file of at most {MAX_BYTES} bytes")
    except OSError as error:
        allowed = "give the files of nova-compute with --config-file"
        raise InvalidInput.of(path, f"is not read ({error.strerror})", allowed) from error


def _opened(path: Path, check: Callable[[os.stat_result], None]) -> int:
    """Return a descriptor of a file or a folder, after a check of each part of its path.

    Each part is opened in its turn: nobody can exchange a part after its check.

    :param path: an absolute path.
    :param check: gets the status of each folder and link on the way, and of the file.
    :raises OSError: the path does not exist, or the check fails.
    """
    parts, links = [*reversed(path.parts)], 0
    descriptor = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        while parts:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            part = os.open(parts.pop(), flags, dir_fd=descriptor)
            status = os.fstat(part)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                parts += reversed(Path(os.readlink("", dir_fd=part)).parts)
                os.close(part)
            else:
                os.close(descriptor)
                descriptor = part
            check(status)
            if links > _MOST_LINKS:
                raise OSError(0, "too many links")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_link(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode) and not _is_ours(status):
        raise PermissionError(0, f"user {status.st_uid} made a link on the way to the file")


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in {0, os.geteuid()}


def _write(folder: int, name: str, content: bytes, mode: int | None) -> None:
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old and _is_stream(folder, name, old):
        # Without a reader of a FIFO, an error takes the place of a wait for ever.
        with _open(folder, name, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK) as file:
            os.set_blocking(file.fileno(), True)
            file.write(content)
        return
    _remove_remains(folder)
    new = f"{_NEW}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with _open(folder, new, flags, 0o666 if mode is None else 0o600) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(content)
            file.flush()
            if mode is None and old and stat.S_ISREG(old.st_mode) and _is_ours(old):
                mode = stat.S_IMODE(old.st_mode)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())  # some file systems notice a full disk only here
            os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:  # also after Ctrl-C
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            raise


def _remove_remains(folder: int) -> None:
    """Remove the new files of killed commands: a file of a running command is locked."""
    names = list[str]()
    with suppress(OSError):  # a folder that may not be listed
        names = [path.name for path in Path(f"/proc/self/fd/{folder}").iterdir()]
    for name in names:
        with suppress(OSError):
            if name.startswith(_NEW) and _is_old(os.lstat(name, dir_fd=folder)):
                with _open(folder, name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)


def _is_old(status: os.stat_result) -> bool:
    is_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return is_file and status.st_mtime < time.time() - _YOUNG


def _open(folder: int, name: str, flags: int, mode: int = 0) -> BinaryIO:
    return os.fdopen(os.open(name, flags | os.O_CLOEXEC, mode, dir_fd=folder), "wb")


def _is_stream(folder: int, name: str, entry: os.stat_result) -> bool:
    """Tell whether a name is a device, a pipe or an open file, and no other user made the name."""
    place = os.fstat(folder)
    is_shared = place.st_mode & (stat.S_IWOTH | stat.S_IWGRP) and not place.st_mode & stat.S_ISVTX
    if is_shared or not _is_ours(place) or not _is_ours(entry):
        return False
    if place.st_dev == Path("/proc").stat().st_dev:  # /dev/fd/63
        return True
    if stat.S_ISLNK(entry.st_mode):  # /dev/stdout, also where the shell has opened a file
        return os.readlink(name, dir_fd=folder).startswith("/proc/self/fd/")
    return not stat.S_ISREG(entry.st_mode) and not stat.S_ISDIR(entry.st_mode)
