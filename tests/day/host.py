"""The host of a day: a libvirtd of its own, ``host watch`` and ``host audit``, and Prometheus.

The guests are on CPU 0, and every program of the day on CPU 1.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
import requests

from tests.day.rules import compressed
from tests.libvirt.embedded import qemu_conf
from tests.processes.daemons import Daemon, free_port, wait_for

RULES = Path(__file__).parents[2] / "etc" / "prometheus" / "cpu-tiers.rules.yml"
COMMAND = [str(Path(sys.executable).with_name("cpu-tiers"))]
TIERS = ("--tier", "gold=100", "--tier", "silver=50", "--tier", "bronze=25")

_NOVA_CONF = """\
[DEFAULT]
cpu_allocation_ratio = 6
[compute]
cpu_shared_set = 0
"""
"""One CPU, of which 600 shares are for sale."""

_PROMETHEUS = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: cpu-tiers
    static_configs: [targets: ["127.0.0.1:{exporter}"]]
"""

_PRIVATE = (
    'mkdir -p /etc/libvirt /var/lib/libvirt /run/libvirt && mount --bind "$0/etc" /etc/libvirt'
    ' && mount --bind "$0/lib" /var/lib/libvirt && mount --bind "$0/run" /run/libvirt'
    ' && exec libvirtd --config "$0/libvirtd.conf" --pid-file "$0/pid"'
)
"""Other folders in place of those of the machine's libvirt, for this libvirtd only."""


@contextmanager
def private_libvirtd(folder: Path) -> Iterator[str]:
    """Run a libvirtd that shares nothing with the machine's; yield its URI."""
    for name in ("etc", "lib", "run", "sockets"):
        (folder / name).mkdir()
    (folder / "etc" / "qemu.conf").write_text(qemu_conf())
    sockets = folder / "sockets"
    (folder / "libvirtd.conf").write_text(
        f'unix_sock_dir = "{sockets}"\nauth_unix_ro = "none"\nauth_unix_rw = "none"\n'
    )
    command = ["unshare", "--mount", "sh", "-c", _PRIVATE, str(folder)]
    daemon = Daemon(name="libvirtd", command=command, folder=folder)
    uri = f"qemu+unix:///system?socket={sockets / 'libvirt-sock'}"
    daemon.start(lambda: (sockets / "libvirt-sock").exists())
    try:
        yield uri
    finally:
        daemon.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert.

    :param about: the guest or the tier.
    :param fires: whether it has been true long enough.
    :param text: the summary and the description.
    """

    name: str
    about: str
    text: str
    fires: bool


class DayHost:
    """The programs that look at the guests.

    :ivar hypervisor: the connection to libvirt.
    :param factor: by how much the windows of the rules are shorter.
    """

    def __init__(self, uri: str, folder: Path, factor: int) -> None:
        self.uri, self.folder = uri, folder
        self.hypervisor = libvirt.open(uri)
        self._conf = folder / "nova.conf"
        self._conf.write_text(_NOVA_CONF)
        rules = folder / "rules.yml"
        rules.write_text(compressed(RULES.read_text(), factor))
        exporter = free_port()
        self._metrics = f"http://127.0.0.1:{exporter}/metrics"
        self.watch = Daemon(
            name="watch",
            command=[
                *("nice", "-n", "-10", *COMMAND, "--config-file", str(self._conf)),
                *("host", "watch", "--connect", uri, "--interval", "1", *TIERS),
                *("--listen", f"127.0.0.1:{exporter}"),
            ],
            folder=folder,
        )
        conf = folder / "prometheus.yml"
        conf.write_text(_PROMETHEUS.format(rules=rules, exporter=exporter))
        self._api = f"http://127.0.0.1:{free_port()}"
        self._prometheus = Daemon(
            name="prometheus",
            command=[
                *("nice", "-n", "-10", "prometheus", f"--config.file={conf}"),
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._api.removeprefix('http://')}",
            ],
            folder=folder,
        )

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Run the watch and Prometheus."""
        self.start_watch()
        self._prometheus.start(lambda: self._get("status/runtimeinfo"))
        try:
            yield
        finally:
            self._prometheus.stop()
            self.watch.stop()

    def start_watch(self) -> None:
        """Start the watch, and wait until it answers."""
        self.watch.start(self._answers)

    def _answers(self) -> bool:
        try:
            return requests.get(self._metrics, timeout=10).ok
        except requests.RequestException:
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        try:
            answer = requests.get(f"{self._api}/api/v1/{path}", params=parameters, timeout=60)
        except requests.RequestException:
            return None
        return answer.json()["data"] if answer.ok else None

    def value(self, query: str) -> dict[str, float]:
        """Return the values of a query, by the name of the guest."""
        found = (self._get("query", query=query) or {"result": []})["result"]
        return {one["metric"].get("guest", ""): float(one["value"][1]) for one in found}

    def alerts(self) -> list[Alert]:
        """Return the alerts that fire, or are going to."""
        return [
            Alert(
                name=alert["labels"]["alertname"],
                about=alert["labels"].get("guest") or alert["labels"].get("tier", ""),
                text=" ".join(
                    alert["annotations"].get(part, "") for part in ("summary", "description")
                ),
                fires=alert["state"] == "firing",
            )
            for alert in (self._get("alerts") or {"alerts": []})["alerts"]
        ]

    def check_rules(self) -> None:
        """Wait until Prometheus has evaluated each rule without an error."""
        wait_for(
            lambda: all(
                rule["health"] == "ok"
                for group in (self._get("rules") or {"groups": []})["groups"]
                for rule in group["rules"]
            ),
            "all rules were evaluated",
            [self._prometheus],
        )

    def audit(self, seconds: int = 3) -> dict[str, list[str]]:
        """Return what ``host audit`` finds, by the kind of the findings."""
        command = [*COMMAND, "--config-file", str(self._conf), "host", "audit"]
        command += ["--connect", self.uri, "--interval", str(seconds), "-f", "json"]
        ran = subprocess.run(
            ["nice", "-n", "-10", *command], check=False, capture_output=True, text=True
        )
        assert ran.returncode in (0, 3), ran.stderr
        found: dict[str, list[str]] = {}
        for row in json.loads(ran.stdout):
            found.setdefault(row["kind"], []).append(f"{row['where']}: {row['found']}")
        return found


def keep_off_the_guests() -> None:
    """Run this process and all that it starts on CPU 1; the guests are on CPU 0."""
    os.sched_setaffinity(0, {1})


def wait_until(seconds: float, condition: Any) -> float | None:
    """Return after how many seconds a condition was true; ``None`` if it was not in time."""
    start = time.monotonic()
    while (passed := time.monotonic() - start) <= seconds:
        if condition():
            return passed
        time.sleep(0.25)
    return None


def texts(alerts: Sequence[Alert]) -> str:
    """Return the names of alerts, and whom they are about."""
    return ", ".join(sorted({f"{alert.name} {alert.about}".strip() for alert in alerts}))
