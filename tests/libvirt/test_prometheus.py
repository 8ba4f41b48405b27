"""A real Prometheus with the alert rules, which reads the watch of running guests."""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt
import pytest
import requests
from prometheus_client import CollectorRegistry, start_http_server

from cpu_tiers.tools.host.watch import WatchCollector
from cpu_tiers.tools.host.watched_host import WatchedHost
from tests.libvirt.contest import spinning, start
from tests.libvirt.watched import guest, watch
from tests.processes.daemons import Daemon, free_port, wait_for

ROOT = Path(__file__).parents[2]
RULES = ROOT / "etc" / "prometheus" / "cpu-tiers.rules.yml"
BOARD = ROOT / "etc" / "grafana" / "cpu-tiers.json"

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no Debian package prometheus"
)


class Prometheus:
    """A Prometheus that reads an exporter each second."""

    def __init__(self, folder: Path, exporter: int) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        conf = folder / "prometheus.yml"
        conf.write_text(CONF.format(rules=RULES, exporter=exporter))
        listen = f"--web.listen-address={self._url.removeprefix('http://')}"
        options = [f"--config.file={conf}", f"--storage.tsdb.path={folder / 'data'}", listen]
        self.daemon = Daemon(name="prometheus", command=["prometheus", *options], folder=folder)

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; ``None`` while Prometheus does not listen."""
        try:
            answer = requests.get(f"{self._url}/api/v1/{path}", params=parameters, timeout=60)
        except requests.ConnectionError:
            return None
        assert answer.ok, answer.text
        return answer.json()["data"]

    def values(self, query: str) -> dict[str, float]:
        """Return the values of a query by the name of the guest."""
        found = self.get("query", query=query)["result"]
        return {one["metric"].get("guest", ""): float(one["value"][1]) for one in found}


CONF = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: cpu-tiers
    static_configs: [targets: ["127.0.0.1:{exporter}"]]
"""


@pytest.fixture
def prometheus(hypervisor: libvirt.virConnect, tmp_path: Path) -> Iterator[Prometheus]:
    """Prometheus beside a watch of two guests that spin on one CPU."""
    watched, registry, port = watch(hypervisor), CollectorRegistry(), free_port()
    registry.register(WatchCollector(lambda: watched.reading))
    exporter, exporting = start_http_server(port, "127.0.0.1", registry=registry)
    with (
        spinning(hypervisor, tmp_path, guest("gold", 400), [0]) as gold,
        spinning(hypervisor, tmp_path, guest("other", 100), [0]) as other,
    ):
        for domain in (other, gold):
            start(domain, [0])
        with _reading(watched):
            running = Prometheus(tmp_path, port)
            try:
                running.daemon.start(lambda: running.get("status/runtimeinfo"))
                yield running
            finally:
                running.daemon.stop()
                exporter.shutdown()
                exporter.server_close()
                exporting.join()


@contextmanager
def _reading(watched: WatchedHost) -> Iterator[None]:
    """Read the guests again and again, until the end of the context."""
    end = threading.Event()

    def read() -> None:
        while not end.wait(0.5):
            watched.read()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_prometheus_reads_the_watch_and_the_rules(prometheus: Prometheus) -> None:
    rate = "rate(cpu_tiers_watch_due_seconds_total[10s])"
    due = {"watch-gold": 0.8, "watch-other": 0.2}  # 400 and 100 of 500 of one CPU
    wait_for(
        lambda: prometheus.values(rate) == pytest.approx(due, abs=0.1),
        "what is due",
        [prometheus.daemon],
    )
    assert prometheus.values("cpu_tiers_watch_floor_cpus") == due
    groups = prometheus.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    names = set(re.findall(r"(?:record|alert): (\S+)", RULES.read_text()))
    assert {rule["name"] for rule in rules} == names
    wait_for(
        lambda: all(
            rule["health"] == "ok"
            for group in prometheus.get("rules")["groups"]
            for rule in group["rules"]
        ),
        "all rules were evaluated",
        [prometheus.daemon],
    )
    recorded = "instance_tier:cpu_tiers_missing:ratio_rate5m"
    wait_for(lambda: prometheus.values(recorded), "a recorded series", [prometheus.daemon])
    for query in queries(json.loads(BOARD.read_text())):
        prometheus.get("query", query=query)


def queries(board: Any) -> Iterator[str]:
    """Yield the queries of a Grafana board, with values in place of its variables."""
    children = board.values() if isinstance(board, dict) else board
    if isinstance(board, dict) and isinstance(board.get("expr"), str):
        yield re.sub(r"\$\w+", ".*", board["expr"].replace("$__rate_interval", "1m"))
    for child in children:
        if isinstance(child, dict | list):
            yield from queries(child)


def test_the_rules_fire(tmp_path: Path) -> None:
    test = tmp_path / "test.yml"
    # Each minute 60 s are due. First 12 s of them are missing, a fifth, and then nothing. A guest
    # without a tier uses half a CPU, and the guests weigh 1124 of 600 shares.
    test.write_text(TEST.format(rules=RULES, **TEXTS))
    result = subprocess.run(["promtool", "test", "rules", test], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)


TEXTS = {
    "cause": "Servers without a tier use 0.50 CPUs of the host."
    " Run cpu-tiers host audit on the host: its findings name the causes.",
    "oversold": "Servers without a tier: 1."
    " Run cpu-tiers host audit on the host: the finding oversold says what weighs too much.",
    "node": "Run cpu-tiers host audit -f json on the host: the finding oversold names the guests"
    " to move, and cpu-tiers plan relieve --audit plans it.",
    "quota": "The finding quota of cpu-tiers host audit names the cgroup, and says what to write.",
    "waits": "Run cpu-tiers host audit on the host: its findings name the causes.",
    # 20 s a minute for 50 minutes
    "under_class": "gold guests of h had less than the class V of SCS-0100 for 16m 40s of a day",
    "survive": "cpu-tiers plan survive names the worst host, and says how much more must be free.",
}

TEST = """\
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: cpu_tiers_watch_due_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+60x200
      - series: cpu_tiers_watch_missing_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+12x60 720x140
      - series: cpu_tiers_watch_ran_seconds_total{{instance="h", guest="p", tier=""}}
        values: 0+30x200
      - series: cpu_tiers_watch_sold_cpus{{instance="h", guest="g", tier="gold"}}
        values: 0.2x200
      - series: cpu_tiers_watch_due_cpus{{instance="h", guest="p", tier=""}}
        values: 0x200
      - series: cpu_tiers_watch_host_shares{{instance="h"}}
        values: 600x200
      - series: cpu_tiers_watch_host_weight_shares{{instance="h"}}
        values: 600x30 1124x170
      - series: cpu_tiers_watch_under_class_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+20x200
      - series: cpu_tiers_watch_oversold_cpus_kept_ratio{{instance="h", cpus="0-7"}}
        values: _x20 0.5714x180
    alert_rule_test:
      - eval_time: 50m
        alertname: CpuTiersPromiseBurnsFast
        exp_alerts:
          - exp_labels: {{severity: page, instance: h, tier: gold}}
            exp_annotations:
              summary: "gold guests of h lack 20% of the CPU time that is due"
              description: "{cause}"
      - {{eval_time: 110m, alertname: CpuTiersPromiseBurnsFast, exp_alerts: []}}
      - {{eval_time: 110m, alertname: CpuTiersGuestShort, exp_alerts: []}}
      - {{eval_time: 50m, alertname: CpuTiersOversold, exp_alerts: []}}
      - eval_time: 62m
        alertname: CpuTiersOversold
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h}}
            exp_annotations:
              summary: "The guests of h weigh 1124 shares, more than the host sells"
              description: "{oversold}"
      - {{eval_time: 45m, alertname: CpuTiersCpusOversold, exp_alerts: []}}
      - eval_time: 55m
        alertname: CpuTiersCpusOversold
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h, cpus: 0-7}}
            exp_annotations:
              summary: "On CPU 0-7 of h a share keeps 57.14% of what it is sold as"
              description: "{node}"
      - {{eval_time: 40m, alertname: CpuTiersUnderClass, exp_alerts: []}}
      - eval_time: 50m
        alertname: CpuTiersUnderClass
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h, tier: gold}}
            exp_annotations:
              summary: "{under_class}"
              description: "{cause}"
  # A quota of its flavor stops the guest c, and a quota by hand the guest g. Both wait 0.2 s
  # before each of two runs a second; only g misses something. The watch ends after 30 minutes.
  - interval: 1m
    input_series:
      - series: cpu_tiers_watch_throttled_seconds_total{{instance="h", guest="c", tier="gold"}}
        values: 0+30x30
      - series: cpu_tiers_watch_quota_cpus{{instance="h", guest="c", tier="gold"}}
        values: 0.5x30
      - series: cpu_tiers_watch_throttled_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+30x30
      - series: cpu_tiers_watch_waited_seconds_total{{instance="h", guest="c", tier="gold"}}
        values: 0+24x30
      - series: cpu_tiers_watch_runs_total{{instance="h", guest="c", tier="gold"}}
        values: 0+120x30
      - series: cpu_tiers_watch_due_seconds_total{{instance="h", guest="c", tier="gold"}}
        values: 0+30x30
      - series: cpu_tiers_watch_missing_seconds_total{{instance="h", guest="c", tier="gold"}}
        values: 0+3x30
      - series: cpu_tiers_watch_waited_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+24x30
      - series: cpu_tiers_watch_runs_total{{instance="h", guest="g", tier="gold"}}
        values: 0+120x30
      - series: cpu_tiers_watch_due_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+30x30
      - series: cpu_tiers_watch_missing_seconds_total{{instance="h", guest="g", tier="gold"}}
        values: 0+4x30
      - series: cpu_tiers_watch_reading_timestamp_seconds{{instance="h"}}
        values: 0+60x30
    alert_rule_test:
      - eval_time: 25m
        alertname: CpuTiersThrottled
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h, guest: g, tier: gold}}
            exp_annotations:
              summary: "A quota that is not in its XML stops g (gold) on h"
              description: "{quota}"
      - eval_time: 25m
        alertname: CpuTiersLongWaits
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h, guest: g, tier: gold}}
            exp_annotations:
              summary: "vCPUs of g (gold) on h wait 200ms before each run"
              description: "{waits}"
      - {{eval_time: 34m, alertname: CpuTiersWatchStands, exp_alerts: []}}
      - eval_time: 40m
        alertname: CpuTiersWatchStands
        exp_alerts:
          - exp_labels: {{severity: ticket, instance: h}}
            exp_annotations:
              summary: "cpu-tiers host watch on h has not read the guests for five minutes"
              description: "Look at the log of the service cpu-tiers-watch."
      - {{eval_time: 6h45m, alertname: CpuTiersWatchStands, exp_alerts: []}}
  - interval: 1m
    input_series:
      - series: cpu_tiers_tier_room{{tier="gold"}}
        values: 2x9 0x70
      - series: cpu_tiers_shares_free{{host="h"}}
        values: -25x80
      - series: cpu_tiers_cloud_hosts_may_not_fail
        values: 0x20 2x60
      - series: cpu_tiers_cloud_timestamp_seconds
        values: 0x80
    alert_rule_test:
      - {{eval_time: 35m, alertname: CpuTiersNoRoom, exp_alerts: []}}
      - eval_time: 50m
        alertname: CpuTiersNoRoom
        exp_alerts:
          - exp_labels: {{severity: ticket, tier: gold}}
            exp_annotations:
              summary: "No more gold server fits into the cloud"
              description: "cpu-tiers capacity says what each host lacks."
      - eval_time: 50m
        alertname: CpuTiersSharesOversold
        exp_alerts:
          - exp_labels: {{severity: ticket, host: h}}
            exp_annotations:
              summary: "h has sold 25 shares beyond its capacity"
              description: "Move servers away: cpu-tiers cloud show names the hosts."
      - {{eval_time: 70m, alertname: CpuTiersHostMayNotFail, exp_alerts: []}}
      - eval_time: 81m
        alertname: CpuTiersHostMayNotFail
        exp_alerts:
          - exp_labels: {{severity: ticket}}
            exp_annotations:
              summary: "If one of 2 hosts fails, servers find no place"
              description: "{survive}"
      - {{eval_time: 60m, alertname: CpuTiersCloudUnread, exp_alerts: []}}
      - eval_time: 70m
        alertname: CpuTiersCloudUnread
        exp_alerts:
          - exp_labels: {{severity: ticket}}
            exp_annotations:
              summary: "What the cloud has sold was not read for 1h 10m 0s"
              description: "Look at the log of cpu-tiers-cloud.service."
  # One of 10,000 places goes each minute: after a day there are 8,560, for 513,600 s more. Silver
  # gets room, and the gold of another cloud is enough for a year.
  - interval: 1m
    input_series:
      - series: cpu_tiers_tier_room{{cloud="one", tier="gold"}}
        values: 10000-1x1440
      - series: cpu_tiers_tier_room{{cloud="one", tier="silver"}}
        values: 10000+1x1440
      - series: cpu_tiers_tier_room{{cloud="two", tier="gold"}}
        values: 525600-1x1440
    promql_expr_test:
      - expr: round(tier:cpu_tiers_sold_out:seconds)
        eval_time: 24h
        exp_samples:
          - labels: '{{cloud="one", tier="gold"}}'
            value: 513600
    alert_rule_test:
      - {{eval_time: 5h, alertname: CpuTiersSoldOutSoon, exp_alerts: []}}
      - eval_time: 24h
        alertname: CpuTiersSoldOutSoon
        exp_alerts:
          - exp_labels: {{severity: ticket, cloud: one, tier: gold}}
            exp_annotations:
              summary: "The tier gold is sold out in 5d 22h 40m 0s"
              description: "Add hosts, or see cpu-tiers capacity and cpu-tiers plan room."
"""
