"""The metrics of a watch, and the board and the alert rules that read them."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cpu_tiers.conf.read import read_config
from cpu_tiers.tools.host.watch import WatchCollector, tell_file_faults
from cpu_tiers.tools.host.watched_guest import HostReading
from cpu_tiers.tools.tiers.cpu_sets import SharedVcpus, contested_cpus
from tests.unit.cli.watched import GOLD, Machine

ROOT = Path(__file__).parents[3]
RULES = ROOT / "etc" / "prometheus" / "cpu-tiers.rules.yml"
BOARD = ROOT / "etc" / "grafana" / "cpu-tiers.json"


@pytest.fixture
def metrics(tmp_path: Path) -> dict[str, dict[str, float]]:
    """Return the values by the name of the metric, and by the tier and the bucket."""
    machine = Machine(tmp_path)
    machine.xml[GOLD] = (
        f"<domain><name>gold</name><uuid>{GOLD}</uuid><vcpu>1</vcpu><cputune><shares>100</shares>"
        "<global_period>100000</global_period><global_quota>90000</global_quota></cputune>"
        "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>"
    )
    machine.start(GOLD)
    machine.layout.write("proc/pressure/cpu", "some avg10=0.00 total=7000000\n")
    scope = machine.layout.paths[GOLD]
    machine.layout.file(scope, "cpu.pressure", "cpu.pressure", "some avg10=0.00 total=3000000\n")
    machine.read()
    machine.spend(GOLD, 2, 8, 100)
    machine.read()
    registry = CollectorRegistry()
    registry.register(WatchCollector(lambda: machine.watched.reading))
    values = dict[str, dict[str, float]]()
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = " ".join(
                sample.labels[name] for name in ("guest", "tier", "le") if name in sample.labels
            )
            values.setdefault(sample.name.removeprefix("cpu_tiers_watch_"), {})[labels] = (
                sample.value
            )
    return values


def test_metrics_of_a_guest(metrics: dict[str, dict[str, float]]) -> None:
    of_guest = {
        name: by_label["gold gold"]
        for name, by_label in metrics.items()
        if "gold gold" in by_label
    }
    # one vCPU, sold as a quarter of a CPU, wanted to run for 10 s and ran for 2
    assert of_guest == {
        "ran_seconds_total": 2,
        "waited_seconds_total": 8,
        "runs_total": 100,
        "throttled_seconds_total": 0,
        "pressure_seconds_total": 3,
        "due_seconds_total": 2.5,
        "missing_seconds_total": pytest.approx(0.5),
        "under_class_seconds_total": 0,
        "sold_cpus": 0.25,
        "quota_cpus": 0.9,
        "due_cpus": 0.25,
        "floor_cpus": 1,
        "entitlement_cpus": 1,
    }
    assert metrics["guests"] == {"": 1}
    assert metrics["unread_files_total"] == {"": 0}
    assert metrics["machine_pressure_seconds_total"] == {"": 7}
    assert metrics["host_due_seconds_total"] == {"": 2.5}
    assert metrics["host_missing_seconds_total"] == pytest.approx({"": 0.5})
    assert metrics["host_shares"] == {"": 400}
    assert metrics["wait_seconds_sum"] == {"gold": 8}
    waits = metrics["wait_seconds_bucket"]
    assert (waits["gold 0.05"], waits["gold 0.1"], waits["gold +Inf"]) == (0, 100, 100)


def test_metrics_of_an_oversold_node() -> None:
    """700 shares on CPU 0, of which 400 are sold."""
    vcpus = [SharedVcpus("g", Fraction(700), 7, frozenset({0}))]
    reading = HostReading(oversold=tuple(contested_cpus(vcpus, Fraction(400))))
    registry = CollectorRegistry()
    registry.register(WatchCollector(lambda: reading))
    line = 'cpu_tiers_watch_oversold_cpus_kept_ratio{cpus="0"} 0.57142'
    assert line in generate_latest(registry).decode()


def test_a_provider_file_that_is_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The watch says so before a restart of nova-compute, and no more with the file."""
    path = tmp_path / "nova.conf"
    path.write_text(
        "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n"
        f"[compute]\nprovider_config_location = {tmp_path}\n"
    )
    conf = read_config([str(path)])
    assert tell_file_faults(conf, "one", 200) == 1
    assert "servers hold 200 CUSTOM_VCPU_SHARES: nova-compute does not start" in caplog.text
    assert tell_file_faults(conf, "one", 0) == 0
    (tmp_path / "cpu-tiers.yaml").write_text(
        "meta: {schema_version: '1.0'}\nproviders:\n- identification: {uuid: $COMPUTE_NODE}\n"
        "  inventories: {additional: [CUSTOM_VCPU_SHARES: {total: 800}]}\n"
    )
    assert tell_file_faults(conf, "one", 200) == 0


@pytest.mark.parametrize("path", [RULES, BOARD], ids=lambda path: path.name)
@pytest.mark.skipif(not RULES.exists(), reason="installed without the repository")
def test_every_metric_that_is_read_exists(
    path: Path, metrics: dict[str, dict[str, float]]
) -> None:
    used = set(re.findall(r"\bcpu_tiers_watch_(\w+)", path.read_text()))
    used -= {"oversold_cpus_kept_ratio"}  # below
    assert len(used) >= 6
    assert used <= metrics.keys()


@pytest.mark.skipif(not RULES.exists(), reason="installed without the repository")
def test_every_recorded_series_is_used_and_exists() -> None:
    text = RULES.read_text()
    recorded = re.findall(r"record: (\S+)", text)
    used = set(re.findall(r"(?<!record: )\b(?:instance_)?tier:\w+:\w+", text))
    assert set(recorded) == used
    assert len(recorded) == 6
