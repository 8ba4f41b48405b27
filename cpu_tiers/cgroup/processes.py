"""Find the QEMU process of each guest in /proc, and the scheduling policies of its threads.

Source: proc(5). libvirt starts QEMU with ``-uuid`` and the uuid of the domain.
"""

from collections.abc import Collection, Iterator

from cpu_tiers.cgroup.files import VANISHED, Files

_POLICY = 41 - 3
"""The index of field 41 of ``stat`` in the fields after the name in parentheses, field 2."""


def find_guests(files: Files, uuids: Collection[str]) -> dict[str, str]:
    """Return the process ids of guests, by uuid. A guest without a process is left out."""
    pids = {}
    for pid in filter(str.isdigit, files.folders("/proc")):
        path = f"/proc/{pid}/cmdline"
        with files.noted(path):
            uuid = _uuid(files.read(path).split("\0"))
            if uuid in uuids:
                pids[uuid] = pid
    return pids


def _uuid(arguments: list[str]) -> str:
    """Return the argument after ``-uuid``, or empty text if there is none."""
    if "-uuid" not in arguments[:-1]:
        return ""
    return arguments[arguments.index("-uuid") + 1].lower()


def policies(files: Files, pid: str) -> dict[str, int]:
    """Return the scheduling policy of each thread of a process, by the name of the thread.

    If several threads have an equal name, a policy other than 0 (SCHED_OTHER) wins, because the
    audit has to report it.
    """
    policy_of: dict[str, int] = {}
    for name, policy in _threads(files, pid):
        policy_of[name] = policy or policy_of.get(name, policy)
    return policy_of


def _threads(files: Files, pid: str) -> Iterator[tuple[str, int]]:
    for thread in files.folders(f"/proc/{pid}/task"):
        try:
            stat = files.read(f"/proc/{pid}/task/{thread}/stat")
        except VANISHED:
            continue
        # The name of a thread may contain blanks and parentheses: the last one ends it.
        head, _, tail = stat.rpartition(")")
        yield head.partition("(")[2], int(tail.split()[_POLICY])
