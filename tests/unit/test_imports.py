"""What importing the core brings in."""

import subprocess
import sys

HEAVY = {
    "cliff",
    "dataclasses",
    "keystoneauth1",
    "lxml",
    "nova",
    "os_traits",
    "oslo_config",
    "oslo_log",
    "requests",
    "rich",
    "stevedore",
    "tenacity",
}


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_translators_and_weights_bring_in_nothing_heavy() -> None:
    loaded = loaded_by("import cpu_tiers.translators, cpu_tiers.weights")
    assert {"cpu_tiers.translators.shares", "cpu_tiers.weights.forest"} <= loaded
    assert loaded & HEAVY == set()


def test_the_client_does_not_import_placement() -> None:
    assert "placement" not in loaded_by("import cpu_tiers.tools.placement.client")


def test_only_a_scoring_by_cost_brings_in_the_costs() -> None:
    imported = "from cpu_tiers.weights import SCORINGS, make_forest"
    made = imported + "; make_forest({}, {}, scoring=SCORINGS['%s'])"
    costs = {
        name: "cpu_tiers.weights.cost" in loaded_by(made % name)
        for name in ("literal", "boring", "best-fit", "fragmentation")
    }
    assert costs == {"literal": False, "boring": False, "best-fit": True, "fragmentation": True}
