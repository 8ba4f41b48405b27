"""Notice the processes that start on this machine with the uuid of a domain.

Most processes of a host are no guests and live long, so a process is examined only while it is
young.
"""

from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.processes import uuid_argument

YOUNG_SECONDS = 60.0
"""How long a process is examined: libvirt starts a process some time before it becomes QEMU."""


class Newcomers:
    """The processes of this machine, and the uuids in their arguments."""

    def __init__(self) -> None:
        """Begin without any process: in the first reading all processes are young."""
        self._first_seen: dict[str, float] = {}
        self._uuids: dict[str, str] = {}

    def uuids(self, files: Files, now: float) -> frozenset[str]:
        """Return the uuids of the domains whose process runs.

        A process with the uuid of a domain may be another program than QEMU.

        :param now: the time in seconds, by a clock that never goes back.
        :raises OSError: the user may not list the processes.
        """
        pids = list(filter(str.isdigit, files.names("/proc")))
        self._first_seen = {pid: self._first_seen.get(pid, now) for pid in pids}
        self._uuids = {pid: uuid for pid, uuid in self._uuids.items() if pid in self._first_seen}
        for pid, first_seen in self._first_seen.items():
            if pid not in self._uuids and now - first_seen <= YOUNG_SECONDS:
                with files.noted(f"/proc/{pid}/cmdline"):
                    if uuid := uuid_argument(files.read(f"/proc/{pid}/cmdline")):
                        self._uuids[pid] = uuid
        return frozenset(self._uuids.values())
