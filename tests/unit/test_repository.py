"""What the repository says in two places is the same."""

import ast
import re
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not installed
from cliff.command import Command
from oslo_config import cfg
from packaging.requirements import Requirement

from cpu_tiers.conf import list_opts
from cpu_tiers.tools.frame.command_table import commands
from tests.cloud.page import blocks

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)


def test_ci_runs_the_readmes_test_command() -> None:
    first, second = re.findall(
        r"^(python3 -m venv (?:.*&&\n)?.*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert first.endswith("cpu-tiers demo")
    assert second.endswith("tox")
    assert second in (ROOT / ".ci" / "run").read_text().splitlines()


def test_ci_runs_the_tests_that_the_test_command_of_the_readme_leaves_out() -> None:
    left_out = re.findall(r"--ignore ([\w/]+)", (ROOT / "tox.ini").read_text())
    assert left_out
    assert f"tox -e nova -- {' '.join(left_out)} ||" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("release", ["nova31", "nova32", "nova33"])
def test_the_libraries_of_an_earlier_nova_are_those_that_its_tests_require(release: str) -> None:
    """Otherwise ``tox -e constraints`` was not run after a change of pyproject.toml."""
    lines = (ROOT / "constraints" / f"{release}.txt").read_text()
    pinned = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lines, re.MULTILINE))
    required = list(requirements(release, "nova-test"))
    assert {
        f"{each.name}=={pinned.get(each.name)}" for each in required if not meets(each, pinned)
    } == set()
    assert {"hatchling", "nova", "openstack-placement"} < {each.name for each in required}


def test_what_is_installed_beside_a_nova_has_no_latest_version() -> None:
    """``pip install 'cpu-tiers[embedded]'`` would take back what the Nova of a host has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {**project["optional-dependencies"], "": project["dependencies"]}
    bounded = {
        f"{each} ({extra})"
        for extra, lines in extras.items()
        for each in map(Requirement, lines)
        if any(bound.operator not in {">=", "!="} for bound in each.specifier)
    }
    assert len(extras) > 5
    assert bounded == set()


def requirements(*groups: str) -> Iterator[Requirement]:
    """Yield the requirements of the package, of ``[embedded]`` and of groups of development."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = document["project"]["optional-dependencies"]
    waiting: list[Any] = [{"include-group": group} for group in groups]
    waiting += document["build-system"]["requires"] + document["project"]["dependencies"]
    waiting += extras["embedded"] + extras["tools"]
    while waiting:
        match waiting.pop():
            case {"include-group": group}:
                waiting += document["dependency-groups"][group]
            case str(line) if not line.startswith("cpu-tiers["):
                yield Requirement(line)


def meets(required: Requirement, pinned: dict[str, str]) -> bool:
    """Tell whether the version of a library is one that a requirement allows."""
    name = required.name.lower().replace("_", "-").replace(".", "-")
    return name in pinned and pinned[name] in required.specifier


def test_the_sample_has_every_option_and_the_default() -> None:
    sample = (ROOT / "etc" / "cpu-tiers" / "cpu-tiers.conf.sample").read_text()
    for group, options in list_opts():
        section = sample.split(f"\n[{group}]\n")[1].split("\n[")[0]
        for option in options:
            assert f"\n#{option.name} = {shown(option.default)}".rstrip() in section
            assert words(option.help or "?") in words(section)


def words(text: str) -> str:
    """Return a text without the line breaks and marks of a comment."""
    return " ".join(text.replace("#", "").split())


def shown(default: object) -> str:
    """Return a default as oslo-config-generator writes it."""
    if default is None:
        return "<None>"
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(map(str, default)) if isinstance(default, list) else str(default)


def test_the_snippet_sets_options_that_exist() -> None:
    path = ROOT / "etc" / "cpu-tiers" / "nova.conf.snippet"
    snippet = ConfigParser(default_section="")  # [DEFAULT] holds an option of Nova's own
    snippet.read(path)
    conf = cfg.ConfigOpts()
    for group, options in list_opts():
        conf.register_opts(options, group=group)
    conf([], default_config_files=[str(path)])
    novas = {"compute_driver", "cpu_shared_set", "weight_classes"}
    for group, section in snippet.items():
        for name in section.keys() - novas:
            assert str(conf[group][name]).lower() == section[name]


def options_of(text: str) -> dict[str, dict[str, str]]:
    """Return the options of lines for nova.conf, by their group."""
    parser = ConfigParser(default_section="")  # [DEFAULT] is a group as the others
    parser.read_string(text)
    return {name: dict(group) for name, group in parser.items() if name}


def test_kolla_and_openstack_ansible_have_the_options_of_the_guide() -> None:
    """No value differs: a test follows the guide in a real cloud."""
    guide = [block.text for block in blocks("docs/install/install.rst") if block.path]
    page = blocks("docs/install/deployment.rst")
    kolla = [block.text for block in page if block.path.startswith("/etc/kolla/config/")]
    wanted = options_of("\n".join(guide))
    assert wanted.keys() == {"DEFAULT", "libvirt", "api", "filter_scheduler"}
    assert options_of("\n".join(kolla)) == wanted
    (variables,) = (block.text for block in page if "user_variables" in block.path)
    role = yaml.safe_load(variables)
    overrides = {
        "DEFAULT": {"compute_driver": role["nova_compute_driver"]},
        **role["nova_nova_conf_overrides"],
    }
    assert {
        group: {name: str(value).replace("True", "true") for name, value in options.items()}
        for group, options in overrides.items()
    } == wanted


def test_the_example_of_the_readme_prints_the_stated_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(code, {})  # noqa: S102  # it is ours
    *_, says = code.splitlines()
    assert capsys.readouterr().out == says.removeprefix("# ") + "\n"


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "cli" / "cpu-tiers.rst").read_text()
    assert len(commands()) >= 7
    for name in commands():
        assert f"``cpu-tiers {name}" in page


# Every command has them, and the first paragraph of the page describes them together.
OF_CLIFF = {
    *("--help", "--format", "--column", "--quote", "--noindent", "--variable", "--prefix"),
    *("--max-width", "--fit-width", "--print-empty"),
    *("--sort-column", "--sort-ascending", "--sort-descending"),
}


def test_every_argument_of_a_command_is_documented() -> None:
    page = (ROOT / "docs" / "cli" / "cpu-tiers.rst").read_text()
    missing = {
        (command.name, option)
        for command in commands().values()
        for option in options(command.load()) - OF_CLIFF
        if not re.search(rf"{option}(?![\w-])", page)
    }
    assert missing == set()


def test_the_completion_knows_every_option_that_takes_a_file() -> None:
    completion = (ROOT / "packaging" / "cpu-tiers.bash-completion").read_text()
    assert {
        option
        for command in commands().values()
        for option in options(command.load(), of_files=True)
        if not re.search(rf"[ |]{option}[|)]", completion)
    } == set()


def options(command: type[Command], *, of_files: bool = False) -> frozenset[str]:
    """Return the long options of a command, or only those that take a file."""
    parser = command(None, None).get_parser("cpu-tiers")  # type: ignore[arg-type]
    texts = (
        text
        for action in parser._actions
        for text in action.option_strings
        if not of_files or re.search(r"FILE|\.json", str(action.metavar))
    )
    return frozenset(text for text in texts if text.startswith("--"))


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in (ROOT / "cpu_tiers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert len(places) >= 100
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
