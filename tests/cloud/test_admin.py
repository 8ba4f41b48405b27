"""The terminal sessions of the admin guides, and of the README, word for word.

The tests are steps of one life of a cloud, and run in their order: plain Nova, shares, NUMA nodes,
and plain Nova again.
"""

import json

import pytest

from tests.cloud.gold import BOOT
from tests.cloud.page import Page, Shell

CONF = "/etc/nova/nova.conf"
COMPUTE_CONF = "/etc/nova/nova-compute.conf"
PLAIN = {"VCPU": 1, "MEMORY_MB": 128}
GOLD = {**PLAIN, "CUSTOM_VCPU_SHARES": 100}
SHOW = "openstack resource provider allocation show"
INVENTORY = (
    "openstack --os-placement-api-version 1.18 resource provider inventory list $UUID -f value"
)
CHASSIS = """\
export OVN_SB_DB=unix:$PWD/sb.sock
ovsdb-tool create sb.db /usr/share/ovn/ovn-sb.ovsschema
OVS_RUNDIR=$PWD ovsdb-server --detach --no-chdir --pidfile=$PWD/sb.pid --remote=p$OVN_SB_DB sb.db
options=resource_provider_bandwidths=br-ex:3000000:2000000,resource_provider_hypervisors=br-ex:compute1
ovn-sbctl chassis-add chassis1 geneve 10.20.0.1
ovn-sbctl set chassis chassis1 hostname=compute1 \
    other_config:ovn-bridge-mappings='"physnet0:br-ex"' other_config:ovn-cms-options="\"$options\""
"""
"""A southbound database of OVN with the chassis of compute1."""

NEEDS_PYPI = "$ python3 -m venv"
"""The first commands of the README install from PyPI, to which the cloud has no way."""


class Guide:
    """The pages that one shell follows."""

    PAGES = tuple(
        f"admin/{name}"
        for name in ("bandwidth", "compute", "debugging", "numa", "quota", "scheduler", "upgrade")
    )

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.pages = {name: Page(f"docs/{name}.rst") for name in self.PAGES}
        self.pages["README"] = Page("README.md")

    def follow(self, page: str, text: str, path: str = "") -> str:
        """Follow the next block of a page that has a text; return the outputs of the commands."""
        block = self.pages[page].take(text)
        return "\n".join(self.shell.follow(step) for step in block.steps(path))

    def held(self) -> list[dict[str, int]]:
        """Return what the server of the pages holds of each provider."""
        shown = json.loads(self.shell.output_of(f"{SHOW} $SERVER -f json"))
        return [provider["resources"] for provider in shown]

    def lose_shares(self) -> None:
        """Take the shares from the server, as a claim without cpu-tiers would have."""
        unset = "openstack --os-placement-api-version 1.28 resource provider allocation unset"
        self.shell.output_of(f"{unset} --resource-class CUSTOM_VCPU_SHARES $SERVER")
        assert self.held() == [PLAIN]


@pytest.fixture(scope="module")
def guide(shell: Shell) -> Guide:
    shell.output_of("set -o pipefail; cd $(mktemp -d)")
    return Guide(shell)


def test_installation(guide: Guide) -> None:
    guide.follow("admin/compute", "pip install 'cpu-tiers[tools]'")
    guide.follow("admin/upgrade", "pip install --upgrade")


def test_a_host_reports_shares(guide: Guide) -> None:
    guide.follow("admin/compute", "report_vcpu_shares = true", COMPUTE_CONF)
    guide.follow("admin/compute", "reshape plan --host compute1")
    shell = guide.shell
    shell.output_of("systemctl restart nova-api nova-compute")
    shell.output_of("UUID=$(openstack resource provider list --name compute1 -f value -c uuid)")
    shell.output_of(INVENTORY, "...CUSTOM_VCPU_SHARES...")
    assert "CUSTOM_VCPU_SHARES" in guide.follow("admin/compute", "UUID=$(openstack")


def test_the_chassis_of_ovn(guide: Guide) -> None:
    shell = guide.shell
    shell.output_of(CHASSIS)
    guide.follow("admin/bandwidth", "ovn-sbctl")
    shell.output_of("kill $(cat sb.pid)")
    tree = "openstack resource provider list --in-tree $UUID -f value -c name"
    device = "compute1:OVN Controller agent:br-ex"
    assert device in shell.output_of(tree).splitlines()
    for name in (device, "compute1:OVN Controller agent"):
        found = f"openstack resource provider list --name '{name}' -f value -c uuid"
        shell.output_of(f"openstack resource provider delete $({found})")
    assert shell.output_of(tree) == "compute1"
    shell.output_of(
        "openstack trait list -f value | grep -e ^CUSTOM_PHYSNET_ -e ^CUSTOM_VNIC_TYPE_"
        " | xargs -n 1 openstack trait delete"
    )


def test_leaving_a_host_without_servers(guide: Guide) -> None:
    """The host reports shares again afterwards."""
    shell = guide.shell
    shell.output_of(f"sed -i '/^report_vcpu_shares/s/true/false/' {COMPUTE_CONF}")
    shell.output_of("systemctl stop nova-compute")
    guide.follow("admin/compute", "inventory delete")
    assert "CUSTOM_VCPU_SHARES" not in shell.output_of(INVENTORY)
    shell.output_of(f"sed -i '/^report_vcpu_shares/s/false/true/' {COMPUTE_CONF}")
    shell.output_of("systemctl start nova-compute")
    shell.output_of(INVENTORY, "...CUSTOM_VCPU_SHARES...")


def test_nova_scheduler_requests_shares(guide: Guide) -> None:
    guide.follow("admin/compute", "query_placement_for_vcpu_shares = true", CONF)
    guide.shell.output_of("openstack aggregate create batch")
    guide.follow("admin/scheduler", "aggregate set")
    assert "compute1" in guide.follow("admin/scheduler", "--required")
    guide.follow("admin/scheduler", "require_host_traits", CONF)
    guide.shell.output_of("systemctl restart nova-scheduler")
    guide.follow("admin/scheduler", "flavor create mixed")


def test_the_commands_of_the_readme(guide: Guide) -> None:
    gold = "gold --vcpus 1 --ram 128 --disk 0 --property quota:cpu_shares_multiplier=100"
    guide.shell.output_of(f"openstack flavor create {gold}")
    guide.follow("README", "cpu-tiers flavor check gold.json")
    guide.follow("README", "cpu-tiers explain gold.json")


def test_debugging(guide: Guide) -> None:
    guide.shell.output_of(f"{BOOT} gold1 --flavor gold")
    # The guest must not take the CPU from the services.
    guide.shell.output_of("virsh suspend $(virsh list --name)")
    guide.follow("admin/debugging", "TOKEN=")
    guide.follow("admin/debugging", "cpu-tiers flavor check")
    guide.follow("admin/debugging", "QUERY=")
    assert "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER" in guide.follow("admin/debugging", "trait list")
    guide.follow("admin/debugging", "cpu-tiers weigh")
    guide.follow("admin/debugging", "reshape plan")
    assert "CUSTOM_VCPU_SHARES" in guide.follow("admin/debugging", "show --allocations")
    guide.follow("admin/debugging", "--in-tree")
    assert "<shares>100</shares>" in guide.follow("admin/debugging", "virsh dumpxml")


def test_a_limit_of_shares(guide: Guide) -> None:
    """A project with a limit of 100 shares has one Gold server; another project has none."""
    shell = guide.shell
    for project in ("acme", "other"):
        shell.output_of(f"openstack project create {project}")
        shell.output_of(f"openstack role add --project {project} --user admin admin")
    guide.follow("admin/quota", "--system all reader")
    guide.follow("admin/quota", "count_vcpu_shares")
    guide.follow("admin/quota", "systemctl restart")
    refused = "...403: ...over limit of {} due to current usage {} and delta 100..."
    boot = f"OS_PROJECT_NAME={{}} {BOOT} gold2 --flavor gold"
    shell.output_of(f"{boot.format('other')} 2>&1 || true", refused.format(0, 0))
    shell.output_of(boot.format("acme"))
    shell.output_of(f"{boot.format('acme')} 2>&1 || true", refused.format(100, 100))
    shell.output_of("OS_PROJECT_NAME=acme openstack server delete gold2 --wait")


@pytest.mark.parametrize("page", ["admin/compute", "admin/bandwidth"])
def test_a_server_without_shares_is_healed(guide: Guide, page: str) -> None:
    guide.lose_shares()
    assert "100" in guide.follow(page, "heal --plan")
    assert guide.held() == [GOLD]


def test_a_host_where_nothing_may_be_loaded(guide: Guide) -> None:
    """Nova's own driver reports the inventory by a file."""
    shell = guide.shell
    multiplier = "s/^vcpu_share_multiplier.*/vcpu_share_multiplier = 160/"
    shell.output_of(f"sed -i.before '/^compute_driver = cpu/d; {multiplier}' {COMPUTE_CONF}")
    guide.follow("admin/compute", "provider-yaml")
    shell.output_of("systemctl restart nova-compute")
    inventory = "openstack resource provider inventory show $UUID CUSTOM_VCPU_SHARES"
    shell.output_of(f"{inventory} -f value -c total", "160")
    guide.lose_shares()
    guide.follow("admin/compute", "heal --plan --host compute1")
    assert guide.held() == [GOLD]
    shell.output_of(f"rm -r /etc/nova/provider_config; mv {COMPUTE_CONF}.before {COMPUTE_CONF}")
    shell.output_of("systemctl restart nova-compute")
    shell.output_of(f"{inventory} -f value -c total", "100")


def test_a_plan_for_numa_nodes(guide: Guide) -> None:
    """The control plane is away while the plan is made; the plan is applied before a start."""
    shell = guide.shell
    shell.output_of(f"cat {CONF} {COMPUTE_CONF} > nova.conf")
    numa = guide.pages["admin/compute"].take("enable_numa_reporting")
    for path in ("nova.conf", COMPUTE_CONF):
        for step in numa.steps(path):
            shell.follow(step)
    guide.follow("admin/numa", "virsh capabilities")
    shell.output_of(
        "systemctl stop nova-compute nova-scheduler nova-api nova-conductor placement-api"
    )
    guide.follow("admin/numa", "--offline")
    shell.output_of("systemctl start placement-api nova-conductor nova-api nova-scheduler")
    shell.output_of(f"{SHOW} $SERVER -f value -c resources", "...CUSTOM_VCPU_SHARES...")
    guide.follow("admin/numa", "reshape apply")
    assert guide.held() != [GOLD]
    shell.output_of("systemctl start nova-compute")
    assert "compute1_NUMA0" in guide.follow("admin/compute", "--in-tree")
    guide.follow("admin/upgrade", "upgrade check")


def test_leaving(guide: Guide) -> None:
    """As "Leave cpu-tiers" in docs/admin/compute.rst and docs/admin/numa.rst say."""
    shell = guide.shell
    shell.output_of(f"sed -i '/^weight_classes/d; /^query_placement/d; /^require_host/d' {CONF}")
    shell.output_of("systemctl restart nova-scheduler")
    assert "gold" in guide.follow("admin/compute", "flavor list")
    guide.follow("admin/compute", "flavor unset gold")
    shell.output_of("openstack server delete gold1 --wait")
    shell.output_of("systemctl stop nova-compute")
    tree = "openstack resource provider list --in-tree $UUID -f value -c uuid -c name"
    shell.output_of(f"{tree} > tree; grep PAGES tree > nodes; grep 'NUMA[0-9]*$' tree >> nodes")
    shell.output_of("cut -d ' ' -f 1 nodes | xargs -n 1 openstack resource provider delete")
    shell.output_of(
        f"sed -i '/^enable_numa/d; /^report_vcpu/d; /^compute_driver = cpu/d' {COMPUTE_CONF}"
    )
    guide.follow("admin/compute", "trait set")
    traits = shell.output_of("openstack resource provider trait list $UUID -f value")
    assert "CUSTOM_" not in traits
    shell.output_of("pip uninstall --yes cpu-tiers")
    shell.output_of("systemctl restart nova-api nova-scheduler nova-compute")
    anchor = "openstack resource provider inventory show $UUID CUSTOM_NUMA_SERVER 2>&1 || true"
    shell.output_of(anchor, "No inventory of class CUSTOM_NUMA_SERVER...")
    guide.follow("admin/compute", "resource class delete")
    assert "CUSTOM_" not in shell.output_of("openstack trait list; openstack resource class list")


def test_all_sessions_of_the_pages_were_followed(guide: Guide) -> None:
    rest = [(name, text) for name, page in guide.pages.items() for text in page.rest()]
    assert [each for each in rest if not each[1].startswith(NEEDS_PYPI)] == []
