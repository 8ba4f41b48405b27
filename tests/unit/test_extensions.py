"""Plugins of other distributions, installed for real: a folder with metadata."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from cpu_tiers import extensions
from cpu_tiers.inventory import BUILT_IN as REPORTERS
from cpu_tiers.tools.libvirt.domain import BUILT_IN as DOMAIN_XML
from cpu_tiers.translators import BUILT_IN as TRANSLATORS

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a small distribution, as pip would unpack its wheel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # of stevedore

    def install(name: str, module: str, *, namespace: str, entry: str) -> None:
        site = tmp_path / name
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (site / f"{name}.py").write_text(dedent(module))
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{namespace}]\n{entry}\n")
        paths = [str(tmp_path / other) for other in sorted(p.name for p in tmp_path.iterdir())]
        monkeypatch.setenv("PYTHONPATH", ":".join(paths))

    return install


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter, which sees what was installed."""
    return subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=False
    )


LICENCES = """
    from cpu_tiers.model.request import RequestGroup

    def translate(server):
        if "our:licence" not in server.flavor.extra_specs:
            return []
        return [RequestGroup(resources={"CUSTOM_LICENCE": 1})]
"""

TRANSLATE = """
    import json
    from cpu_tiers import extensions
    from cpu_tiers.model.flavor import Flavor
    from cpu_tiers.translators import ServerRequest, translate

    flavor = Flavor(name="f", vcpus=2, memory_mb=64, extra_specs={"our:licence": "yes"})
    loaded = extensions.load(extensions.TRANSLATORS)
    print(json.dumps(translate(ServerRequest(flavor=flavor), loaded).resources()))
"""


def test_a_translator_of_another_distribution_takes_part(install: Install) -> None:
    entry = "licences = our_cloud:translate"
    install("our_cloud", LICENCES, namespace="cpu_tiers.translators", entry=entry)
    result = python(TRANSLATE)
    assert json.loads(result.stdout) == {"VCPU": 2, "MEMORY_MB": 64, "CUSTOM_LICENCE": 1}


FULLEST = """
    def score(server, host):
        return host.used["VCPU"] / host.capacity["VCPU"]
"""

WEIGH = """
    import tempfile
    from pathlib import Path
    from cpu_tiers.conf.read import read_config
    from cpu_tiers.conf.weigher import configured_scoring
    from cpu_tiers.weights import make_forest

    path = Path(tempfile.mkdtemp(), "nova.conf")
    path.write_text("[filter_scheduler]\\nresource_provider_scoring = fullest")
    scoring = configured_scoring(read_config([str(path)]).filter_scheduler)
    amounts = {"VCPU": {"capacity": 8, "used": 6}}
    host = {"resources": amounts, "traits": [], "root_provider_uuid": "host"}
    print(make_forest({"host": host}, {"VCPU": 1}, scoring=scoring).score("host"))
"""


def test_a_scoring_of_another_distribution(install: Install) -> None:
    assert "nova.conf, [filter_scheduler] resource_provider_scoring" in python(WEIGH).stderr
    entry = "fullest = our_cloud:score"
    install("our_cloud", FULLEST, namespace="cpu_tiers.scorings", entry=entry)
    assert python(WEIGH).stdout == "0.75\n"  # 6 of 8


def test_without_the_extension_no_extension_resource_is_requested() -> None:
    assert json.loads(python(TRANSLATE).stdout) == {"VCPU": 2, "MEMORY_MB": 64}


def test_a_second_claim_of_a_class_is_an_error(install: Install) -> None:
    greedy = LICENCES.replace("CUSTOM_LICENCE", "VCPU")
    entry = "greedy = our_cloud:translate"
    install("our_cloud", greedy, namespace="cpu_tiers.translators", entry=entry)
    assert "'greedy' and 'sizes' both request VCPU" in python(TRANSLATE).stderr


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("licences = our_cloud:absent", "the plugin 'licences' (our_cloud:absent) does not load"),
        ("licences = our_clod:translate", "does not load: No module named 'our_clod'"),
        ("licences = our_cloud:RequestGroup.__doc__", "is not callable"),
        ("sizes = our_cloud:translate", "two plugins are named 'sizes'"),
    ],
)
@pytest.mark.parametrize("namespace", ["translators", "inventory", "domain_xml"])
def test_a_plugin_that_cannot_take_part_is_an_error(
    install: Install, namespace: str, entry: str, message: str
) -> None:
    ours = {"translators": "sizes", "inventory": "memory", "domain_xml": "cputune"}[namespace]
    entry, message = (text.replace("sizes", ours) for text in (entry, message))
    install("our_cloud", LICENCES, namespace=f"cpu_tiers.{namespace}", entry=entry)
    result = python(f"from cpu_tiers import extensions; extensions.load('cpu_tiers.{namespace}')")
    assert result.returncode == 1
    assert "ExtensionError" in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    ("namespace", "built_in"),
    [
        (extensions.TRANSLATORS, TRANSLATORS),
        (extensions.INVENTORY, REPORTERS),
        (extensions.DOMAIN_XML, DOMAIN_XML),
    ],
)
def test_the_built_in_plugins_are_the_entry_points_of_cpu_tiers(
    namespace: str, built_in: dict[str, object]
) -> None:
    assert extensions.load(namespace) == built_in
