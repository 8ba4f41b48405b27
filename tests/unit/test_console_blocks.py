"""A test runs each terminal session of the documentation, or there is a reason why none does."""

import re
from pathlib import Path

import pytest

from tests.cloud.page import blocks
from tests.unit.references import ROOT, texts

pytestmark = pytest.mark.skipif(
    not (ROOT / "tox.ini").exists(), reason="installed without the repository"
)

RUN_BY = {
    "docs/install/install.rst": "tests/cloud/test_guide.py",
    "docs/admin/compute.rst": "tests/cloud/test_admin.py",
    "docs/admin/scheduler.rst": "tests/cloud/test_admin.py",
    "docs/admin/bandwidth.rst": "tests/cloud/test_admin.py",
    "docs/admin/debugging.rst": "tests/cloud/test_admin.py",
    "docs/install/deployment.rst": "tests/cloud/test_ansible.py",
    "docs/admin/numa.rst": "tests/cloud/test_admin.py",
    "docs/admin/quota.rst": "tests/cloud/test_admin.py",
    "docs/install/stock-nova.rst": "tests/cloud/test_stock_nova.py",
    "docs/install/choose-hosts.rst": "tests/cloud/test_choose_hosts.py",
    "docs/admin/upgrade.rst": "tests/cloud/test_admin.py",
}
"""The test that follows all sessions of a page, by the page."""

NEEDS_AN_INDEX = "Downloads packages; `tox -e demo` runs the demo."
TOX = "Starts tox, which a test does not; a contributor runs it."
OF_NOVA = "Commands of Nova alone."
NOT_RUN = {
    ("README.md", "cpu-tiers demo"): NEEDS_AN_INDEX,
    ("README.md", ".venv/bin/tox"): ".ci/run runs it word for word.",
    ("README.md", "cpu-tiers flavor check gold.json"): "tests/cloud/test_admin.py runs it.",
    (
        "README.md",
        "cpu-tiers explain gold.json",
    ): "tests/functional/cli runs the commands on hosts of its own.",
    ("docs/install/tempest.rst", "tempest list-plugins"): (
        "tests/packaging/test_tempest.py runs the second command, after tox installed the plugin."
    ),
    ("docs/install/tempest.rst", "tempest run"): "tests/cloud/test_tempest.py runs it.",
    (
        "docs/admin/reading.rst",
        "cloud show --databases",
    ): "tests/functional/cli/test_databases.py runs the command on databases of its own.",
    (
        "docs/cli/openstack-client.rst",
        "openstack --os-cloud production cpu tier explain",
    ): "tests/functional/cli/test_openstack_client.py runs the command on a cloud of its own.",
    (
        "docs/install/cloud.rst",
        "one-node-cloud down",
    ): "tests/cloud/conftest.py starts and ends the cloud.",
    ("docs/install/cloud.rst", "add-host compute2"): "tests/cloud/test_moves.py adds the host.",
    (
        "docs/install/cloud.rst",
        "openvswitch-switch",
    ): "tests/cloud/test_bandwidth.py starts the programs on both hosts.",
    (
        "docs/install/cloud.rst",
        "--min-kbps",
    ): "tests/cloud/test_bandwidth.py makes ports of several bandwidths.",
    (
        "docs/install/cloud.rst",
        "nr_hugepages",
    ): "tests/cloud/test_bandwidth.py reserves and releases pages.",
    (
        "docs/admin/capacity.rst",
        "placement check",
    ): "tests/functional/cli/test_placement_check.py runs it.",
    (
        "docs/admin/cloud-show.rst",
        "What is left",
    ): "tests/functional/cli/test_cloud_show.py runs the command on hosts of its own.",
    (
        "docs/admin/cloud-show.rst",
        "--audit",
    ): "tests/functional/cli/test_cloud_show.py gives files.",
    (
        "docs/admin/simulation.rst",
        "cloud snapshot",
    ): "tests/functional/cli/test_cloud_snapshot.py runs it.",
    (
        "docs/admin/simulation.rst",
        "cloud requests",
    ): "tests/nova/commands/test_stored_flavors.py runs it.",
    (
        "docs/admin/simulation.rst",
        "--requests requests.csv",
    ): "tests/functional/cli/test_simulate.py runs it.",
    (
        "docs/admin/simulation.rst",
        "--draw 400",
    ): "tests/unit/cli/test_simulation_text.py prints such columns.",
    ("docs/user/tiers.rst", "flavor show gold"): OF_NOVA,
    ("docs/user/tiers.rst", "resize --flavor silver"): OF_NOVA,
    ("docs/contributor/cloud-faults.rst", "CPU_TIERS_FAULTS="): TOX,
    ("docs/install/cloud.rst", "NOVA_RELEASE=31"): "tests/cloud/conftest.py passes it on.",
    (
        "docs/admin/explaining.rst",
        "cpu-tiers explain gold.json",
    ): "tests/functional/cli/test_explain.py runs it on hosts of its own.",
    (
        "docs/admin/explaining.rst",
        "cpu-tiers capacity gold.json",
    ): "tests/functional/cli/test_capacity.py runs it on hosts of its own.",
    (
        "docs/admin/decision-record.rst",
        "--decisions",
    ): "tests/functional/cli/test_recorded_decisions.py runs it on a file of its own.",
    (
        "docs/admin/planning.rst",
        "cpu-tiers plan drain cn0",
    ): "tests/functional/cli/test_plan.py runs the command on hosts of its own.",
    (
        "docs/admin/planning.rst",
        "cpu-tiers plan relieve --audit",
    ): "tests/functional/cli/test_plan.py runs the command on hosts of its own.",
    (
        "docs/admin/watcher.rst",
        "openstack optimize audit create",
    ): "tests/watcher/test_watcher.py runs such audits inside of the decision engine.",
    ("docs/contributor/ledger.rst", "tox -e nova-ledger"): TOX,
    ("docs/contributor/random-lives.rst", "CPU_TIERS_LIVES=100"): TOX,
    ("docs/contributor/measured.rst", "tox -e contention"): TOX,
    ("docs/contributor/recipes.rst", "pip install --quiet tox"): TOX,
    ("docs/contributor/recipes.rst", "tox -e genconfig"): TOX,
    ("docs/contributor/recipes.rst", "request show f.json"): TOX,
    ("docs/contributor/recipes.rst", "tests/nova/test_attributes.py"): TOX,
    ("docs/contributor/recipes.rst", "tox -e seams"): TOX,
    ("docs/contributor/recipes.rst", "tests/nova/scheduler"): TOX,
    ("docs/install/index.rst", "of/the/clone"): "`.ci/run` and the README install a clone.",
    ("docs/contributor/release.rst", "git tag"): "tests/packaging builds a clone with a tag.",
    ("docs/contributor/release.rst", "tox -e release"): TOX,
    ("docs/contributor/release.rst", "pypi-server"): "Done by hand, with a tag for trial.",
    (
        "docs/contributor/release.rst",
        "pypi_attestations",
    ): "A signature needs the identity of a CI.",
}
"""Why no test follows a session word for word, by the page and a text of the session."""

PAGES = sorted({"README.md", *(name for name in texts("docs") if name.endswith(".rst"))})
PROGRAMS = (
    r"cpu-tiers(?! in nova-)[\w-]*|curl|export|git|nova-\w+|openstack|pip|python3?|sudo"
    r"|systemctl|tox|uv|virsh"
)


def sessions(page: str) -> list[str]:
    """Return the terminal sessions of a page that no test follows as a whole."""
    return [block.text for block in blocks(page) if block.console and page not in RUN_BY]


@pytest.mark.parametrize("page", PAGES)
def test_every_session_is_run_or_has_a_reason(page: str) -> None:
    reasons = [text for name, text in NOT_RUN if name == page]
    named = [[text for text in reasons if text in session] for session in sessions(page)]
    assert [len(texts_of_it) for texts_of_it in named] == [1] * len(reasons), sessions(page)


@pytest.mark.parametrize(("page", "test"), RUN_BY.items())
def test_a_test_names_the_page_under_test(page: str, test: str) -> None:
    name = page.removeprefix("docs/")
    assert re.search(f'"(docs/)?{name}"|"{Path(name).with_suffix("")}"', (ROOT / test).read_text())
    assert any(block.console for block in blocks(page))


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_in_sessions(page: str) -> None:
    """A command in a literal block of another kind would be followed by no test."""
    literal = rf"::\n\n +(?:[$#] )?(?:{PROGRAMS}) "
    assert not re.findall(literal, (ROOT / page).read_text())
