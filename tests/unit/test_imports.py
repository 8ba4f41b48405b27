"""What importing the core brings in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cpu_tiers

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


FLAVOR = {"name": "plain", "vcpus": 1, "memory_mb": 1024, "root_gb": 1, "extra_specs": {}}
SNAPSHOT = {
    "format": "cpu-tiers cloud snapshot",
    "version": 1,
    "masked": False,
    "providers": [],
    "consumers": {},
    "flavors": [FLAVOR],
}


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("flavor check flavor.json", id="a file"),
        pytest.param("explain --flavor plain --snapshot cloud.json", id="a snapshot"),
        pytest.param("capacity --flavor plain --snapshot cloud.json", id="a sum of a snapshot"),
    ],
)
def test_a_command_that_asks_no_service_imports_no_library_of_http(
    arguments: str, tmp_path: Path
) -> None:
    sizes = {"name": "plain", "vcpus": 1, "ram": 1024, "disk": 1, "properties": {}}
    (tmp_path / "flavor.json").write_text(json.dumps(sizes))
    (tmp_path / "cloud.json").write_text(json.dumps(SNAPSHOT))
    program = (
        "import sys\n"
        "from cpu_tiers.tools.frame.app import main\n"
        f"status = main({arguments.split()})\n"
        "print()\n"
        "print(status, *{'keystoneauth1', 'requests', 'tenacity', 'urllib3'} & {*sys.modules})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.splitlines()[-1] in ("0", "3"), ran.stderr


def test_only_a_scoring_by_cost_brings_in_the_costs() -> None:
    imported = "from cpu_tiers.weights import SCORINGS, make_forest"
    made = imported + "; make_forest({}, {}, scoring=SCORINGS['%s'])"
    costs = {
        name: "cpu_tiers.weights.cost" in loaded_by(made % name)
        for name in ("literal", "boring", "best-fit", "fragmentation")
    }
    assert costs == {"literal": False, "boring": False, "best-fit": True, "fragmentation": True}


def test_the_library_is_what_nova_loads_or_a_driver_imports() -> None:
    """A module that only commands load belongs to ``tools/``: see docs/contributor/house.rst."""
    package = Path(cpu_tiers.__file__).parent
    ours = (path.relative_to(package) for path in package.rglob("*.py"))
    library = [path for path in ours if path.parts[0] not in ("nova", "tools")]
    assert len(library) > 50
    lines = sum(len((package / path).read_text().splitlines()) for path in library)
    assert lines <= 12_000
