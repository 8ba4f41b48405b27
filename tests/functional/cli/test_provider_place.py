"""``cpu-tiers inventory show -f provider-yaml`` beside the provider.yaml of a site."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not installed

Command = Callable[..., Any]


HEAD = "meta: {schema_version: '1.0'}\n"
SITE = HEAD + "providers:\n  - identification: {%s}\n    traits: {additional: [CUSTOM_LICENSE]}\n"
UUID = "6b3ae1d2-9c40-4f5e-8a17-0d2c5b7e9f31"
"""The uuid of the host, in the file compute_id of Nova."""
EQUAL = "{total: 6400, max_unit: 6400, allocation_ratio: 2.0}"  # 64 x 100
OTHER = "{total: 6300, max_unit: 6300, allocation_ratio: 2.0}"
MERGED = HEAD + (
    "providers:\n  - identification: {%s}\n    inventories:\n      additional:\n"
    "        - CUSTOM_VCPU_SHARES: %s\n"
)
STARTS_NOT = 'nova-compute would not start ("has multiple definitions")'
IGNORES = "nova-compute would ignore the shares without a log line"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder of the site's provider.yaml; nova.conf.site names the folder."""
    folder = tmp_path / "provider_config"
    folder.mkdir()
    (tmp_path / "compute_id").write_text(f"{UUID}\n")
    (tmp_path / "nova.conf.site").write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}\ncpu_allocation_ratio = 2.0\n"
        f"[compute]\nprovider_config_location = {folder}/\n"
    )
    return folder


@pytest.fixture
def show(run: Command, site: Path, capabilities: str) -> Command:
    """Print or write the file of the host compute1."""

    def show(*arguments: str, status: int = 0) -> Any:
        conf = ("--config-file", site.parent / "nova.conf.site")
        host = ("--capabilities", capabilities, "--hostname", "compute1")
        form = ("-f", "provider-yaml", *arguments)
        return run(*conf, "inventory", "show", *host, *form, status=status)

    return show


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        pytest.param(SITE % "uuid: $COMPUTE_NODE", STARTS_NOT, id="the same identification"),
        pytest.param(SITE % "name: compute1", IGNORES, id="the name of the host"),
        pytest.param(SITE % f"uuid: {UUID}", IGNORES, id="the uuid of the host"),
        pytest.param(MERGED % ("name: compute1", OTHER), IGNORES, id="other shares, by name"),
        pytest.param(MERGED % ("uuid: $COMPUTE_NODE", OTHER), STARTS_NOT, id="other shares"),
    ],
)
def test_a_file_of_the_site_is_named_with_the_class_to_merge(
    show: Command, site: Path, text: str, effect: str
) -> None:
    (site / "10-site.yaml").write_text(text)
    for arguments in ((), ("--file", str(site / "cpu-tiers.yaml"))):
        result = show(*arguments, status=1)
        assert result.stdout == ""
        assert f"{site}/10-site.yaml: has an entry" in result.stderr
        assert effect in result.stderr
    assert list(site.iterdir()) == [site / "10-site.yaml"]
    # The remedy works: the entry with the line is right.
    (line,) = re.findall("the line - CUSTOM_VCPU_SHARES: ({.*?})", result.stderr)
    identification = re.findall("identification: {(.*)}", text)[0]
    (site / "10-site.yaml").write_text(MERGED % (identification, line))
    assert "10-site.yaml has the shares of compute1 already" in show(status=3).stderr


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SITE % "name: compute2", id="the name of another host"),
        pytest.param(SITE % "uuid: 00000000-0000-4000-8000-000000000000", id="another uuid"),
        pytest.param(SITE % "name: compute1_gpu", id="a provider below the host"),
        pytest.param(HEAD, id="no providers"),
    ],
)
def test_a_file_for_other_providers_is_no_obstacle(show: Command, site: Path, text: str) -> None:
    (site / "10-site.yaml").write_text(text)
    show("--file", str(site / "cpu-tiers.yaml"))
    document = yaml.safe_load((site / "cpu-tiers.yaml").read_text())
    assert document["providers"][0]["identification"] == {"uuid": "$COMPUTE_NODE"}
    assert (site / "cpu-tiers.yaml").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "it is empty", id="empty, as the shell leaves a file"),
        pytest.param("a: [\nroot:x:0:0", "no YAML in line 2", id="no YAML, which is not shown"),
        pytest.param("- a\n", "no mapping", id="a list"),
        pytest.param("meta: {}\n", "schema_version is not '1.0'", id="no version"),
        pytest.param(
            HEAD + "providers: [{}]\n",
            "(the identification of a provider is no mapping)",
            id="no identification",
        ),
    ],
)
def test_a_file_with_which_nova_compute_does_not_start(
    show: Command, site: Path, text: str, reason: str
) -> None:
    (site / "10-site.yaml").write_text(text)
    error = show(status=1).stderr
    assert "10-site.yaml: nova-compute does not start with this file" in error
    assert reason in error
    assert "root:x" not in error


def test_the_file_before_is_replaced_and_a_second_file_is_not_made(
    show: Command, site: Path
) -> None:
    (site / "cpu-tiers.yaml").write_text(show().stdout)
    assert "6400" in show().stdout  # the only file of the command is the file to replace
    show("--file", str(site / "cpu-tiers.yaml"))
    show("--file", str(site / "second.yaml"), status=3)  # no second file is needed
    old = (site / "cpu-tiers.yaml").read_text()
    (site / "cpu-tiers.yaml").write_text(old.replace("6400", "6300"))
    error = show("--file", str(site / "second.yaml"), status=1).stderr
    assert f"Remove {site}/cpu-tiers.yaml instead" in error
    (site / "10-site.yaml").write_text(MERGED % ("name: compute1", EQUAL))
    error = show("--file", str(site / "cpu-tiers.yaml"), status=1).stderr
    assert f"10-site.yaml has the shares of the host, too; remove {site}/cpu-tiers.yaml" in error


def test_a_shell_leaves_an_empty_file(site: Path, capabilities: str) -> None:
    (site / "10-site.yaml").write_text(SITE % "uuid: $COMPUTE_NODE")
    program = str(Path(sys.executable).with_name("cpu-tiers"))
    conf = ("--config-file", str(site.parent / "nova.conf.site"))
    host = ("--capabilities", capabilities, "--hostname", "compute1")
    with (site / "cpu-tiers.yaml").open("w") as output:  # as by >
        result = subprocess.run(
            [program, *conf, "inventory", "show", *host, "-f", "provider-yaml"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert "10-site.yaml: has an entry uuid: $COMPUTE_NODE" in result.stderr
    assert f"remove {site}/cpu-tiers.yaml; --file FILE in place of >" in result.stderr


def test_a_file_that_nova_compute_does_not_read(show: Command, site: Path) -> None:
    result = show("--file", str(site.parent / "elsewhere.yaml"))
    assert f"nova-compute reads the files of {site}/" in result.stderr


def test_the_file_needs_the_format(run: Command, capabilities: str) -> None:
    arguments = ("--capabilities", capabilities, "--hostname", "h", "--file", "x")
    assert "--file needs -f provider-yaml" in run("inventory", "show", *arguments, status=2).stderr
