"""The QEMU processes of a host: /proc tells which guest each runs, and how.

Source: proc(5). libvirt starts QEMU with ``-uuid``, the domain's.
"""

from collections.abc import Collection, Iterator

from cpu_tiers.cgroup.files import VANISHED, Files

_POLICY = 41 - 3
"""Field 41 of ``stat``, counted from the third, which follows the name in parentheses."""


def find_guests(files: Files, uuids: Collection[str]) -> dict[str, str]:
    """Return the process ids of guests, by uuid; one that has none is left out."""
    found = {}
    for pid in filter(str.isdigit, files.folders("/proc")):
        path = f"/proc/{pid}/cmdline"
        with files.noted(path):
            uuid = _uuid(files.read(path).split("\0"))
            if uuid in uuids:
                found[uuid] = pid
    return found


def _uuid(arguments: list[str]) -> str:
    """Return what follows ``-uuid``, empty where nothing does."""
    if "-uuid" not in arguments[:-1]:
        return ""
    return arguments[arguments.index("-uuid") + 1].lower()


def policies(files: Files, pid: str) -> dict[str, int]:
    """Return the scheduling policy of each thread of a process, by its name.

    Threads of one name are alike but for those that are not scheduled by weight.
    """
    found: dict[str, int] = {}
    for name, policy in _threads(files, pid):
        found[name] = policy or found.get(name, policy)
    return found


def _threads(files: Files, pid: str) -> Iterator[tuple[str, int]]:
    for thread in files.folders(f"/proc/{pid}/task"):
        try:
            stat = files.read(f"/proc/{pid}/task/{thread}/stat")
        except VANISHED:
            continue
        head, _, tail = stat.rpartition(")")
        yield head.partition("(")[2], int(tail.split()[_POLICY])
