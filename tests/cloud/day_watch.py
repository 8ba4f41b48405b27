"""What ``host watch`` of each host has counted, read from its metrics."""

import re
import time
from collections import defaultdict
from typing import NamedTuple

from tests.cloud.lives import report
from tests.cloud.rest import Cloud
from tests.cloud.two_hosts import HOSTS

_LINE = re.compile(r'^cpu_tiers_watch_(\w+?)(?:\{.*?uuid="([^"]+)".*\})? (\S+)$', re.MULTILINE)
_MENTIONED = 0.05
"""More missing seconds than these are printed."""
_READ = "curl --silent --max-time 9 http://127.0.0.1:9777/metrics"


class Count(NamedTuple):
    """A look at the metrics of a host.

    :param due: the seconds that were due to all guests so far, and ``missing`` what of these.
    :param guests: the missing seconds of each guest, by the server's uuid.
    :param unread: files that could not be read, and ``unknown`` the processes not under watch.
    :param rates: the CPUs that are due to a busy guest.
    """

    due: float
    missing: float
    guests: dict[str, float]
    unread: float
    unknown: float
    rates: dict[str, float]
    read_at: float


def count(cloud: Cloud, host: str) -> Count:
    """Ask the watch of a host.

    :raises AssertionError: the watch does not answer.
    """
    status, text = cloud.on(host, _READ)
    assert status == 0, f"the watch of {host} does not answer: {text}"
    by_name: dict[str, dict[str, float]] = defaultdict(dict)
    for name, uuid, value in _LINE.findall(text):
        by_name[name][uuid] = float(value)
    return Count(
        due=by_name["host_due_seconds_total"][""],
        missing=by_name["host_missing_seconds_total"][""],
        guests=by_name["missing_seconds_total"],
        unread=by_name["unread_files_total"].get("", 0),
        unknown=by_name["unknown_processes"].get("", 0),
        rates=by_name["due_cpus"],
        read_at=by_name["reading_timestamp_seconds"][""],
    )


class WatchLog:
    """Looks at the watches of both hosts.

    :ivar guests: the most missing seconds of each guest that were seen, by host and uuid.
    :ivar ages: how old the last reading was at most, by host, in seconds.
    """

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.last = {host: count(cloud, host) for host in HOSTS}
        self.first = dict(self.last)
        self.guests: dict[tuple[str, str], float] = {}
        self.ages = dict.fromkeys(HOSTS, 0.0)

    def look(self) -> None:
        """Look at both hosts."""
        for host in HOSTS:
            now = count(self.cloud, host)
            self.ages[host] = max(self.ages[host], time.time() - now.read_at)
            more = now.missing - self.last[host].missing
            if more > _MENTIONED:
                guests = {
                    uuid: round(missing - self.guests.get((host, uuid), 0.0), 2)
                    for uuid, missing in now.guests.items()
                    if missing > self.guests.get((host, uuid), 0.0)
                }
                report(f"{host}: {more:.2f} s more are missing: {guests}")
            for uuid, missing in now.guests.items():
                self.guests[host, uuid] = max(missing, self.guests.get((host, uuid), 0.0))
            self.last[host] = now
