"""The metrics of ``cloud show --prometheus``."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cpu_tiers.tools.cloud.cloud_metrics import cloud_metrics
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.metrics import metrics_text, with_label, write_metrics_file
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from cpu_tiers.tools.sold.sold import SoldCloud, sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from tests.unit.cloud_model.clouds import provider

ROOT = Path(__file__).parents[3]
RULES = ROOT / "etc" / "prometheus" / "cpu-tiers.rules.yml"
BOARD = ROOT / "etc" / "grafana" / "cpu-tiers.json"

PROVIDERS = (
    provider("a"),
    provider("a_NUMA0", "a", VCPU=2, CUSTOM_VCPU_SHARES=200),
    provider("a_NUMA1", "a", VCPU=2, CUSTOM_VCPU_SHARES=200),
    provider('b"\n', VCPU=8, CUSTOM_VCPU_SHARES=800),
    provider("c", None, DISABLED_TRAIT, VCPU=8),
)
GOLD = {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}
CONSUMERS = {
    "gold on two nodes": {"a_NUMA0": GOLD, "a_NUMA1": GOLD},
    "plain on two nodes": {"a_NUMA0": {"VCPU": 1}, "a_NUMA1": {"VCPU": 1}},
    "plain, too": {"a_NUMA1": {"VCPU": 1}},
    "large": {'b"\n': {"VCPU": 9, "CUSTOM_VCPU_SHARES": 900}},
    "plain on a host without shares": {"c": {"VCPU": 1}},
}


def cloud(consumers: Mapping[str, Mapping[str, Mapping[str, int]]]) -> SoldCloud:
    return sold_cloud(Snapshot(providers=PROVIDERS, consumers=consumers), [])


def test_hosts_whose_names_are_printed_alike_are_two_hosts() -> None:
    """Prometheus takes no file in which a metric has the same labels twice."""
    names = ("a\x1b", "a\\x1b", "a\x07")
    hosts = [provider(name, VCPU=2, CUSTOM_VCPU_SHARES=200) for name in names]
    sold = sold_cloud(Snapshot(providers=tuple(hosts), consumers={}), [])
    text = metrics_text(cloud_metrics(sold, [], {}, 1.7e9)).decode()
    lines = [line for line in text.splitlines() if line.startswith("cpu_tiers_shares_free{")]
    assert len({line.partition("} ")[0] for line in lines}) == len(lines) == 3


def test_metrics() -> None:
    rooms = [TierRoom("gold", "gold.2", 7), TierRoom("silver", "silver.2", 9, is_exact=False)]
    groups = {"fast": frozenset({"a", 'b"\n'}), "slow": frozenset({"c"})}
    text = metrics_text(cloud_metrics(cloud(CONSUMERS), rooms, groups, 1.7e9, [0, 2, 3])).decode()
    samples = {
        (sample.name.removeprefix("cpu_tiers_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples == {
        ("cloud_hosts", "enabled"): 2,
        ("cloud_hosts", "disabled"): 1,
        ("cloud_hosts", "down"): 0,
        ("cloud_hosts_over",): 2,  # a_NUMA1 has 3 of 2 VCPU, and b 9 of 8
        ("cloud_hosts_may_not_fail",): 2,
        ("cloud_homeless_servers",): 3,  # after the worst failure
        ("cloud_timestamp_seconds",): 1.7e9,
        ("tier_room", "gold"): 7,
        ("tier_room", "silver"): 9,
        ("untiered_servers", "a"): 2,
        ("shares_sold", "a"): 200,
        ("shares_free", "a"): 200,
        ("shares_sold", 'b"\\n'): 900,
        ("shares_free", 'b"\\n'): -100,
        ("group_shares_sold", "fast"): 1100,
        ("group_shares_free", "fast"): 100,
    }


@pytest.mark.parametrize("path", [RULES, BOARD], ids=lambda path: path.name)
@pytest.mark.skipif(not RULES.exists(), reason="installed without the repository")
def test_every_metric_that_is_read_exists(path: Path) -> None:
    rooms = [TierRoom("gold", "gold.2", 7)]
    groups = {"fast": frozenset({"a"})}
    text = metrics_text(cloud_metrics(cloud(CONSUMERS), rooms, groups, 0.0, [0])).decode()
    written = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    used = {
        name
        for name in re.findall(r"\bcpu_tiers_\w+", path.read_text())
        if not name.startswith(("cpu_tiers_watch_", "cpu_tiers_missing", "cpu_tiers_sold_out"))
    }
    assert len(used) >= 5
    assert used <= written


def test_the_files_of_two_clouds(tmp_path: Path) -> None:
    """No series of one file is in the other, and another user can read both."""
    before = os.umask(0o077)
    try:
        series = []
        for name in ("RegionOne", 'Region "2"'):
            path = tmp_path / "cloud.prom"
            metrics = cloud_metrics(cloud(CONSUMERS), [TierRoom("gold", "gold.2", 7)], {}, 1.7e9)
            write_metrics_file(str(path), with_label(metrics, "cloud", name))
            assert stat.S_IMODE(path.stat().st_mode) == 0o644
            samples = [
                sample
                for family in text_string_to_metric_families(path.read_text())
                for sample in family.samples
            ]
            assert {sample.labels["cloud"] for sample in samples} == {name}
            series.append({(each.name, *sorted(each.labels.items())) for each in samples})
    finally:
        os.umask(before)
    assert ("cpu_tiers_cloud_timestamp_seconds", ("cloud", "RegionOne")) in series[0]
    assert len(series[0]) == len(series[1]) > 10
    assert series[0].isdisjoint(series[1])


def test_a_host_that_vanishes_and_a_cloud_without_rooms() -> None:
    text = metrics_text(cloud_metrics(cloud({}), [], {}, 0.0))
    assert b"tier_room{" not in text
    assert b"may_not_fail" not in text
    assert b"\ncpu_tiers_cloud_hosts_may_not_fail 0\n" in (
        metrics_text(cloud_metrics(cloud({}), [], {}, 0.0, [0]))
    )
    nothing = sold_cloud(Snapshot(providers=(), consumers={}), [])
    assert b"host=" not in metrics_text(cloud_metrics(nothing, [], {}, 0.0))


def test_ten_thousand_hosts_are_less_than_a_megabyte() -> None:
    hosts = [provider(f"compute-{n:05}", VCPU=64, CUSTOM_VCPU_SHARES=12800) for n in range(10_000)]
    half = {"VCPU": 32, "CUSTOM_VCPU_SHARES": 6400}
    consumers = {str(n): {host.uuid: half} for n, host in enumerate(hosts)}
    large = sold_cloud(Snapshot(providers=tuple(hosts), consumers=consumers), [])
    text = metrics_text(cloud_metrics(large, [], {}, 0.0))
    assert text.count(b"\ncpu_tiers_shares_free{") == 10_000
    assert len(text) < 1_000_000
