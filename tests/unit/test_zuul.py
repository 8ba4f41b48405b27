""".zuul.yaml names jobs, environments, files and options that exist."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not installed

from cpu_tiers_tempest_plugin.config import GROUP, OPTIONS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / ".zuul.yaml").exists(), reason="installed without the repository"
)
JOB = "cpu-tiers-tempest"


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:  # values of YAML
    """Return the jobs and the project, in their order."""
    loaded: list[dict[str, Any]] = yaml.safe_load((ROOT / ".zuul.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def jobs(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the jobs by their names."""
    return {item["job"]["name"]: item["job"] for item in items if "job" in item}


def test_jobs_of_the_project(items: list[dict[str, Any]], jobs: dict[str, Any]) -> None:
    """Each job of the project is defined here, or runs an environment of tox."""
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    environments = {*(name.removeprefix("testenv:") for name in tox.sections()), "py312"}
    assert "testenv:py3{12,13}" in tox.sections()
    (project,) = (item["project"] for item in items if "project" in item)
    for pipeline in ("check", "gate"):
        names = project[pipeline]["jobs"]
        assert jobs.keys() < set(names)
        for name in names:
            assert name in jobs or name.removeprefix("openstack-tox-") in environments


def test_parents(jobs: dict[str, Any]) -> None:
    assert jobs[JOB]["parent"] == "devstack-tempest"
    assert jobs[f"{JOB}-multinode"]["parent"] == JOB


def test_plugins_of_devstack_and_tempest(jobs: dict[str, Any]) -> None:
    """DevStack clones the repository into a folder with the name of the plugin."""
    (name,) = jobs[JOB]["vars"]["devstack_plugins"]
    assert jobs[JOB]["vars"]["tempest_plugins"] == [name]
    assert f"define_plugin {name}\n" in (ROOT / "devstack" / "settings").read_text()
    assert f"=$DEST/{name}\n" in (ROOT / "devstack" / "plugin.sh").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (module,) = project["entry-points"]["tempest.test_plugins"].values()
    regex = jobs[JOB]["vars"]["tempest_test_regex"]
    assert re.search(regex, module)
    assert (ROOT / regex.removeprefix("^") / "tests").is_dir()


def test_options_of_tempest(jobs: dict[str, Any]) -> None:
    """The plugin of DevStack switches on what the tests expect."""
    local_conf = jobs[JOB]["vars"]["devstack_local_conf"]
    section = local_conf["test-config"]["$TEMPEST_CONFIG"][GROUP.name]
    assert section == {"multiplier": True, "refuse_faulty_flavors": True}
    assert section.keys() <= {option.name for option in OPTIONS}
    plugin = (ROOT / "devstack" / "plugin.sh").read_text()
    for option in ("query_placement_for_vcpu_shares", "refuse_faulty_flavors"):
        assert f" {option} True\n" in plugin


def test_irrelevant_files(jobs: dict[str, Any]) -> None:
    """Each pattern is for files that exist, and none for what a service loads."""
    files = [
        str(path.relative_to(ROOT))
        for folder in ("benchmarks", "contrib", "cpu_tiers", "devstack", "docs", "releasenotes")
        for path in (ROOT / folder).rglob("*")
    ]
    files += ["README.md", "tests/conftest.py", "tox.ini"]
    for job in jobs.values():
        patterns = job["irrelevant-files"]
        assert [text for text in patterns if not any(re.match(text, name) for name in files)] == []
        matched = {name for name in files if any(re.match(text, name) for text in patterns)}
        assert not [name for name in matched if name.startswith(("cpu_tiers/", "devstack/"))]
