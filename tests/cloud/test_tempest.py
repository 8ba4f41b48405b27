"""The Tempest plugin, as docs/install/tempest.rst runs it: with Nova's own driver, and with ours.

The tests are steps of one life of a cloud, and run in their order.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cloud.configuration import DRIVER, QUERY, REPORT, add
from tests.cloud.page import Page, Shell

if not (PROGRAM := Path(sys.executable).parent / "tempest").exists():
    pytest.skip("Tempest is not installed: tox -e tempest", allow_module_level=True)

HOSTS = {"compute1": "", "compute2": "on compute2 "}
"""How a command runs on each host."""

PROVIDER = """\
meta: {schema_version: "1.0"}
providers:
- identification: {uuid: $COMPUTE_NODE}
  inventories:
    additional:
    - CUSTOM_VCPU_SHARES: {total: 100, allocation_ratio: 6.0, max_unit: 100}
"""
REFUSE = """\
[api]
refuse_faulty_flavors = true"""

OF_THE_CLOUD = """\
cd $(mktemp -d) && mkdir etc && cat > etc/tempest.conf <<END
[DEFAULT]
log_file = tempest.log
[oslo_concurrency]
lock_path = $PWD/locks
[auth]
admin_username = $OS_USERNAME
admin_password = $OS_PASSWORD
admin_project_name = $OS_PROJECT_NAME
admin_domain_name = $OS_PROJECT_DOMAIN_NAME
[identity]
uri_v3 = $OS_AUTH_URL
auth_version = v3
[service_available]
cinder = false
swift = false
[compute]
image_ref = $(openstack image show halted -f value -c id)
flavor_ref = $(openstack flavor create --vcpus 1 --ram 128 --disk 1 small -f value -c id)
END"""
"""The lines of tempest.conf for any test of this cloud, before those of the page."""

MOVES = {
    "test_allocation_of_each_tier",
    "test_live_migration",
    "test_resize_and_confirm",
    "test_resize_and_revert",
}


@pytest.fixture(scope="module")
def command(shell: Shell, one_node_cloud: Path) -> str:
    """The command of the page, in the folder of the tempest.conf of the page."""
    page = Page("docs/install/tempest.rst")
    subprocess.run([one_node_cloud, "add-host", "compute2"], check=True)
    shell.output_of(OF_THE_CLOUD)
    (lines,) = page.take("[cpu_tiers]").steps()
    shell.follow(lines)
    shell.output_of(f'tempest() {{ {PROGRAM} "$@"; }}')
    (run,) = page.take("tempest run").steps()
    return f"{run.command} --config-file etc/tempest.conf"


def results(shell: Shell, command: str) -> dict[str, dict[str, str]]:
    """Return how each test ended, by its class."""
    _, output = shell.run(command)
    print(output)  # noqa: T201  # for the log of a run
    ends: dict[str, dict[str, str]] = {}
    for test, end in re.findall(
        r"^\{\d+\} (.*?)(?: \[\d.*\])? \.\.\. (.*)$", output, re.MULTILINE
    ):
        (kind,) = re.findall(r"\w+Test\b", test)
        ends.setdefault(kind, {})[test.partition(f"{kind}.")[2] or "all"] = end
    return ends


def restart(shell: Shell, host: str, reported: str) -> None:
    """Restart nova-compute of a host, and wait until Placement has its class or its trait."""
    shell.output_of(f"{HOSTS[host]}systemctl restart nova-compute")
    uuid = f"$(openstack resource provider list --name {host} -f value -c uuid)"
    shell.output_of(
        f"openstack resource provider inventory list {uuid};"
        f" openstack --os-placement-api-version 1.6 resource provider trait list {uuid}",
        f"...{reported}...",
    )


def test_a_cloud_without_shares(command: str, shell: Shell) -> None:
    assert "cpu_tiers" in shell.output_of("tempest list-plugins")
    reason = {"all": "SKIPPED: Placement does not know CUSTOM_VCPU_SHARES"}
    classes = ("MultiplierTest", "PairTest", "RefusalTest")
    assert results(shell, command) == dict.fromkeys(classes, reason)


def test_novas_own_driver(command: str, shell: Shell, tmp_path: Path) -> None:
    """Both hosts report shares by provider.yaml; no service loads cpu-tiers."""
    (tmp_path / "shares.yaml").write_text(PROVIDER)
    for host, on in HOSTS.items():
        shell.output_of(f"{on}mkdir -p /etc/nova/provider_config")
        shell.output_of(f"{on}cp {tmp_path}/shares.yaml /etc/nova/provider_config")
        restart(shell, host, "CUSTOM_VCPU_SHARES")
    off = "sed 's/^multiplier = .*//; s/^refuse_faulty_flavors = .*//' etc/tempest.conf"
    shell.output_of(f"{off} > etc/pair.conf")
    assert results(shell, command.replace("tempest.conf", "pair.conf")) == {
        "PairTest": dict.fromkeys(MOVES, "ok"),
        "MultiplierTest": {"all": "SKIPPED: [cpu_tiers] multiplier is off"},
        "RefusalTest": {"all": "SKIPPED: [cpu_tiers] refuse_faulty_flavors is off"},
    }


def test_the_driver_of_cpu_tiers(command: str, shell: Shell) -> None:
    shell.output_of("pip install --force-reinstall --no-deps cpu-tiers")
    for host, on in HOSTS.items():
        shell.output_of(f"{on}rm /etc/nova/provider_config/shares.yaml")
        add(shell, f"{DRIVER}\n{REPORT}", "/etc/nova/nova-compute.conf", host if on else "")
        restart(shell, host, "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER")
    add(shell, f"{REFUSE}\n{QUERY}", "/etc/nova/nova.conf")
    shell.output_of("systemctl restart nova-api nova-scheduler")
    assert results(shell, command) == {
        "PairTest": dict.fromkeys(MOVES, "ok"),
        "MultiplierTest": dict.fromkeys(MOVES, "ok"),
        "RefusalTest": {"test_boot": "ok", "test_resize": "ok"},
    }
