"""Find the configuration files with which the nova-compute service was started, in /proc.

Every user may start a process with the name and the arguments of nova-compute. So the process
must be a Python program of root, of the user ``nova`` or of the user of this command, or be in the
cgroup of the unit of nova-compute, into which only root can put a process. The name of a process
whose program is not Python proves nothing: sudo, for example, runs as root with any name.
"""

import os
import pwd
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.processes import status_field

_PROGRAM = "nova-compute"
_UNIT = re.compile(
    r"^(?:0:|\d+:name=systemd):/system\.slice/(?:[^/]+\.slice/)?"
    r"(?:[\w-]*nova[-_]compute(?:@[^/]*)?|devstack@n-cpu)\.service(?:/|$)",
    re.MULTILINE,
)


class ConfigPaths(NamedTuple):
    """The paths of ``--config-file`` and ``--config-dir``; empty for the default paths.

    :ivar owner: the user id of nova-compute.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    owner: int = 0


def find_config(files: Files) -> tuple[ConfigPaths | None, tuple[str, ...]]:
    """Return the paths that the running nova-compute reads, and the process ids of strangers.

    A stranger has the name nova-compute, and is not the service of this machine: it is a process
    of another user, or has another file system than this process, in a container.

    :raises InvalidInput: nova-compute runs several times, with different paths.
    """
    own_namespace = files.target("/proc/self/ns/mnt")
    services, strangers = set[ConfigPaths](), list[str]()
    for pid in filter(str.isdigit, files.folders("/proc")):
        with files.noted(f"/proc/{pid}"):
            arguments = _arguments(files.read(f"/proc/{pid}/cmdline").split("\0"))
            if arguments is None:
                continue
            user = _service_user(files, pid)
            if user is None or files.target(f"/proc/{pid}/ns/mnt") != own_namespace:
                strangers.append(pid)
            else:
                services.add(_paths(files, pid, arguments, user))
    if len(services) > 1:
        given = f"{len(services)} processes run, with different configuration files"
        raise InvalidInput.of(_PROGRAM, given, "give the files with --config-file")
    return next(iter(services), None), tuple(strangers)


def _arguments(command: Sequence[str]) -> Sequence[str] | None:
    """Return the arguments of nova-compute; ``None`` for a command line of another program."""
    # Python runs the script: the name of the script is the first or the second argument.
    for index, argument in enumerate(command[:2]):
        if PurePosixPath(argument).name == _PROGRAM:
            return command[index + 1 :]
    return None


def _service_user(files: Files, pid: str) -> int | None:
    if not PurePosixPath(files.target(f"/proc/{pid}/exe")).name.startswith("python"):
        return None
    # Real, effective, saved and file system user: they differ in a setuid program.
    users = set(map(int, status_field(files.read(f"/proc/{pid}/status"), "Uid").split()))
    if len(users) > 1:
        return None
    known = {0, os.geteuid()}
    with suppress(KeyError):
        known.add(pwd.getpwnam("nova").pw_uid)
    is_service = users <= known or _UNIT.search(files.read(f"/proc/{pid}/cgroup"))
    return users.pop() if is_service else None


def _paths(files: Files, pid: str, arguments: Sequence[str], owner: int) -> ConfigPaths:
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config-file", action="append", default=[])
    parser.add_argument("--config-dir", action="append", default=[])
    known, _ = parser.parse_known_args(list(filter(None, arguments)))
    folder = PurePosixPath(files.target(f"/proc/{pid}/cwd"))
    return ConfigPaths(
        files=tuple(str(folder / path) for path in known.config_file),
        folders=tuple(str(folder / path) for path in known.config_dir),
        owner=owner,
    )
