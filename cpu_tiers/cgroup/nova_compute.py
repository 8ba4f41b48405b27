"""Find the configuration files with which nova-compute was started, in /proc.

A nova-compute in a container has a file system of its own, which ``/proc/PID/root`` shows.
"""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from cpu_tiers.cgroup.files import Files
from cpu_tiers.errors import InvalidInput

_PROGRAM = "nova-compute"
_FOLDER = "/etc/nova"


class ConfigPaths(NamedTuple):
    """The paths of ``--config-file`` and ``--config-dir``; empty for the default paths."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def find_config(files: Files) -> ConfigPaths | None:
    """Return the paths that the running nova-compute reads, or ``None`` if none is visible.

    A nova-compute with another file system counts only if no nova-compute has the file system of
    this process.

    :raises InvalidInput: several nova-compute run, with different paths.
    """
    own = files.target("/proc/self/ns/mnt")
    here, elsewhere = set[ConfigPaths](), set[ConfigPaths]()
    for pid in filter(str.isdigit, files.folders("/proc")):
        with files.noted(f"/proc/{pid}"):
            arguments = _arguments(files.read(f"/proc/{pid}/cmdline").split("\0"))
            if arguments is None:
                continue
            if files.target(f"/proc/{pid}/ns/mnt") == own:
                here.add(_paths(files, pid, arguments))
            else:
                elsewhere.add(_in_container(files, pid, _paths(files, pid, arguments)))
    found = here or elsewhere
    if len(found) > 1:
        given = f"{len(found)} processes run, with different configuration files"
        raise InvalidInput.of(_PROGRAM, given, "give the files with --config-file")
    return next(iter(found), None)


def _arguments(command: Sequence[str]) -> Sequence[str] | None:
    """Return the arguments of nova-compute; ``None`` for a command line of another program."""
    # Python runs the script: the name of the script is the first or the second argument.
    for index, argument in enumerate(command[:2]):
        if PurePosixPath(argument).name == _PROGRAM:
            return command[index + 1 :]
    return None


def _paths(files: Files, pid: str, arguments: Sequence[str]) -> ConfigPaths:
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config-file", action="append", default=[])
    parser.add_argument("--config-dir", action="append", default=[])
    known, _ = parser.parse_known_args(list(filter(None, arguments)))
    folder = PurePosixPath(files.target(f"/proc/{pid}/cwd"))
    return ConfigPaths(
        files=tuple(str(folder / path) for path in known.config_file),
        folders=tuple(str(folder / path) for path in known.config_dir),
    )


def _in_container(files: Files, pid: str, paths: ConfigPaths) -> ConfigPaths:
    """Return the paths below the root of a container, with the default paths of nova-compute."""
    names = ("nova", _PROGRAM)
    root = f"/proc/{pid}/root"
    default_files = [f"{root}{_FOLDER}/{name}.conf" for name in names]
    default_folders = [f"{root}{_FOLDER}/{name}.conf.d" for name in names]
    return ConfigPaths(
        files=tuple(root + path for path in paths.files)
        or tuple(filter(files.exists, default_files)),
        folders=tuple(root + path for path in paths.folders)
        or tuple(filter(files.exists, default_folders)),
    )
