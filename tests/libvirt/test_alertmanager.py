"""One cause, one message: the inhibition rules in a real Alertmanager."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.processes.daemons import Daemon, free_port, wait_for

FOLDER = Path(__file__).parents[2] / "etc" / "prometheus"
CONF, RULES = FOLDER / "cpu-tiers.alertmanager.yml", FOLDER / "cpu-tiers.rules.yml"

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None,
    reason="no Debian package prometheus-alertmanager",
)

Labels = dict[str, str]


class Alertmanager:
    """An Alertmanager with the configuration of the project, and no other of the cluster."""

    def __init__(self, folder: Path) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        options = [f"--config.file={CONF}", f"--storage.path={folder / 'data'}"]
        options += [f"--web.listen-address={self._url.removeprefix('http://')}"]
        options += ["--cluster.listen-address="]
        command = ["prometheus-alertmanager", *options]
        self.daemon = Daemon(name="alertmanager", command=command, folder=folder)

    def get(self, path: str) -> Any:
        """Return an answer; ``None`` while the Alertmanager does not listen."""
        try:
            answer = requests.get(f"{self._url}/api/v2/{path}", timeout=60)
        except requests.ConnectionError:
            return None
        assert answer.ok, answer.text
        return answer.json()

    def fire(self, *alerts: Labels) -> None:
        """Let alerts fire for an hour."""
        end = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        body = [{"labels": labels, "endsAt": end} for labels in alerts]
        answer = requests.post(f"{self._url}/api/v2/alerts", json=body, timeout=60)
        assert answer.ok, answer.text

    def messages(self) -> list[list[str]]:
        """Return the alerts that nothing inhibits, by the message that has them."""
        found = []
        for group in self.get("alerts/groups?inhibited=false"):
            active = [a for a in group["alerts"] if a["status"]["state"] == "active"]
            if active:
                found.append(sorted(each["labels"]["alertname"] for each in active))
        return sorted(found)


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    manager = Alertmanager(tmp_path)
    try:
        manager.daemon.start(lambda: manager.get("status"))
        yield manager
    finally:
        manager.daemon.stop()


def of_host(name: str, host: str, **labels: str) -> Labels:
    return {"alertname": f"CpuTiers{name}", "instance": host, **labels}


def test_one_server_without_a_tier_is_one_message(alertmanager: Alertmanager) -> None:
    """What one server without a tier raises beside six guests of three tiers: 16 alerts."""
    alerts = [of_host("Oversold", "h1")]
    for tier, guests in {"gold": 1, "silver": 2, "bronze": 3}.items():
        alerts.append(of_host("PromiseBurnsFast", "h1", tier=tier))
        for number in range(guests):
            labels = {"tier": tier, "guest": f"{tier}-{number}"}
            alerts += [of_host(name, "h1", **labels) for name in ("GuestShort", "LongWaits")]
    assert len(alerts) == 16
    alertmanager.fire(*alerts)
    waits = [alertmanager.daemon]
    wait_for(lambda: len(alertmanager.get("alerts")) == 16, "16 alerts are known", waits)
    pages = ["CpuTiersPromiseBurnsFast"] * 3
    expected = [["CpuTiersOversold", *pages]]
    wait_for(lambda: alertmanager.messages() == expected, "there is a single message", waits)


def test_another_host_and_another_guest_are_not_inhibited(alertmanager: Alertmanager) -> None:
    alertmanager.fire(
        of_host("PromiseBurnsFast", "h1", tier="gold"),
        of_host("GuestShort", "h2", tier="gold", guest="a"),
        of_host("LongWaits", "h2", tier="gold", guest="a"),
        of_host("Throttled", "h2", tier="gold", guest="b"),
        of_host("GuestShort", "h2", tier="gold", guest="b"),
        of_host("NoRoom", "", tier="gold"),
    )
    waits = [alertmanager.daemon]
    wait_for(lambda: len(alertmanager.get("alerts")) == 6, "six alerts are known", waits)
    expected = [
        ["CpuTiersGuestShort", "CpuTiersThrottled"],
        ["CpuTiersNoRoom"],
        ["CpuTiersPromiseBurnsFast"],
    ]
    wait_for(lambda: alertmanager.messages() == expected, "each host has a message", waits)


def test_the_configuration_names_alerts_that_exist() -> None:
    exist = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    named = set(re.findall(r"\bCpuTiers\w+", CONF.read_text()))
    assert len(named) >= 9
    assert named <= exist
    subprocess.run(["amtool", "check-config", CONF], check=True, capture_output=True)
