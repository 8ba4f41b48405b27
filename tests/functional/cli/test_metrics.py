"""An audit as Prometheus reads it."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.audit import write_metrics
from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.tiers.domain import CpuTime
from cpu_tiers.tools.tiers.tier import Tier
from tests.unit.audit.hosts import cgroups, evidence, guest

GOLD = Tier.parse("gold", "75", 1, where="gold")
CPU0 = CpuSet({0})


@pytest.fixture
def host() -> Evidence:
    """75 and 25 of CPU 0; the cgroup of the first has another weight, the second slept."""
    return evidence(
        guest("gold", 75, CPU0),
        guest("plain", 25, CPU0),
        found=cgroups(gold=50, plain=25),
        spent={"gold": (CpuTime(5.0, 5.0),), "plain": (CpuTime(0.0, 0.0),)},
        shares=200,
    )


def test_metrics(host: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "audit.prom"
    write_metrics(str(path), host, audit(host), [GOLD])
    samples = {
        (sample.name, sample.labels.get("guest") or sample.labels.get("kind", "")): sample
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }
    first = samples["cpu_tiers_guest_weight", "gold"]
    assert first.labels == {"guest": "gold", "uuid": "gold-uuid", "tier": "gold"}
    assert samples["cpu_tiers_guest_weight", "plain"].labels["tier"] == ""
    values = {
        (name.removeprefix("cpu_tiers_"), label): sample.value
        for (name, label), sample in samples.items()
    }
    assert values.pop(("audit_timestamp_seconds", "")) > 1.7e9
    kinds = {label: n for (name, label), n in values.items() if name == "audit_findings"}
    assert {label for label, n in kinds.items() if n} == {"weight", "short"}
    assert len(kinds) == 30
    assert {key: n for key, n in values.items() if key[0] != "audit_findings"} == {
        ("audit_interval_seconds", ""): 10.0,
        ("guest_weight", "gold"): 75.0,
        ("guest_weight", "plain"): 25.0,
        ("guest_cgroup_weight", "gold"): 50.0,
        ("guest_cgroup_weight", "plain"): 25.0,
        ("guest_floor_cpus", "gold"): 0.75,
        ("guest_floor_cpus", "plain"): 0.25,
        ("guest_entitlement_cpus", "gold"): 0.75,
        ("guest_entitlement_cpus", "plain"): 0.25,
        ("guest_wanted_cpus", "gold"): 1.0,
        ("guest_wanted_cpus", "plain"): 0.0,
        ("guest_due_cpus", "gold"): 0.75,
        ("guest_due_cpus", "plain"): 0.0,
        ("guest_delivered_cpus", "gold"): 0.5,
        ("guest_delivered_cpus", "plain"): 0.0,
        ("guest_missing_cpus", "gold"): 0.25,
        ("guest_missing_cpus", "plain"): 0.0,
        ("guest_sold_cpus", "gold"): 0.75,
        ("guest_sold_cpus", "plain"): 0.25,
    }


def test_a_file_that_cannot_be_written(host: Evidence) -> None:
    with pytest.raises(InvalidInput, match="there is no folder /nowhere"):
        write_metrics("/nowhere/a.prom", host, [], [])
