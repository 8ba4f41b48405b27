"""Two hosts for a day: tiers, ports with a bandwidth, and NUMA nodes on the second host.

All numbers are worked out by hand: a host shares its CPU 0, as 12 VCPU and 1200 shares, and gives
away its CPU 1. So all servers of the day fit on either host, also while some of them move.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.cloud import two_hosts
from tests.cloud.configuration import QUERY, REPORT, add
from tests.cloud.page import Shell
from tests.cloud.rest import Cloud
from tests.cloud.tiers import SHARES, TIERS
from tests.cloud.two_hosts import HOSTS

NODES_HOST = "compute2"
"""The host that reports its NUMA node."""

MORE_PATIENCE = """\
[DEFAULT]
long_rpc_timeout = 60
running_deleted_instance_poll_interval = 60"""
"""What Nova does within half an hour, it does within a minute."""
RATIO = """\
[DEFAULT]
cpu_allocation_ratio = 12"""
EXTEND = """\
[compute]
extend_cpu_policies = true"""
NODES = """\
[compute]
enable_numa_reporting_to_placement = true"""
QUERY_NODES = """\
[filter_scheduler]
query_placement_for_numa = true"""
WATCH = """\
[program:watch]
command = nice -n -10 cpu-tiers --config-file /etc/nova/nova.conf --config-file /etc/nova/nova-compute.conf host watch --interval 1
redirect_stderr = true
stdout_logfile = /var/log/watch.log"""  # noqa: E501  # a line of a file

PORTS = ("port1", "port2", "port3")
NEW_PORT = "port create --network net1 --qos-policy guaranteed"
AGENT = "Open vSwitch agent"
PORT_CLAIMS = {
    f"{AGENT}:br-physnet0": {
        "NET_BW_EGR_KILOBIT_PER_SEC": 1500,
        "NET_BW_IGR_KILOBIT_PER_SEC": 1000,
    },
    AGENT: {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 100},
}
"""What a port claims of the providers of its host. A device has 10000 kbps, for three servers that
move at the same time."""
_COMMANDS = """\
quota set --instances 30 --cores 60 admin
network create --provider-network-type vlan --provider-physical-network physnet0 --provider-segment 100 net1
subnet create --network net1 --subnet-range 10.30.0.0/24 --no-dhcp subnet1
network qos policy create guaranteed
network qos rule create guaranteed --type minimum-bandwidth --min-kbps 1500 --egress
network qos rule create guaranteed --type minimum-bandwidth --min-kbps 1000 --ingress
network qos rule create guaranteed --type minimum-packet-rate --min-kpps 100 --any
"""  # noqa: E501  # commands


class DayFlavor(NamedTuple):
    """A flavor.

    :param cpus: the CPUs and shares that a server claims.
    :param weight: of its guests; ``None`` leaves the weight to libvirt.
    :param pins: the CPUs on which each vCPU may run.
    :param has_topology: a server can be on either host; without a NUMA topology, on the first.
    """

    vcpus: int
    extra_specs: Mapping[str, str]
    cpus: Mapping[str, int]
    weight: int | None
    pins: Mapping[str, str]
    has_topology: bool = True

    def claims(self, host: str) -> dict[str, Mapping[str, int]]:
        """Return what a server claims of a host, by the name of the provider."""
        memory = {"MEMORY_MB": 128}
        if host != NODES_HOST:
            return {host: {**self.cpus, **memory}}
        return {
            host: {"CUSTOM_NUMA_SERVER": 1},
            f"{host}_NUMA0": self.cpus,
            f"{host}_NUMA0_PAGES_4": memory,
        }


_MULTIPLIER = "quota:cpu_shares_multiplier"
_NODE = {"hw:numa_nodes": "1"}


def _tier(multiplier: int, *, has_topology: bool) -> DayFlavor:
    return DayFlavor(
        vcpus=1,
        extra_specs={_MULTIPLIER: str(multiplier), **(_NODE if has_topology else {})},
        cpus={"VCPU": 1, SHARES: multiplier},
        weight=multiplier,
        pins={"0": "0"},
        has_topology=has_topology,
    )


MIXED = TIERS["mixed"]
FLAVORS = {
    "gold": _tier(100, has_topology=False),
    "silver": _tier(50, has_topology=False),
    "bronze": _tier(25, has_topology=False),
    "gold-node": _tier(100, has_topology=True),
    "silver-node": _tier(50, has_topology=True),
    "bronze-node": _tier(25, has_topology=True),
    "pinned": DayFlavor(1, {"hw:cpu_policy": "dedicated"}, {"PCPU": 1}, None, {"0": "1"}),
    "mixed": DayFlavor(
        MIXED.vcpus,
        MIXED.extra_specs,
        {"VCPU": 1, "PCPU": 1, SHARES: 50},
        MIXED.weight,
        MIXED.cpus,
    ),
    "untiered": DayFlavor(1, _NODE, {"VCPU": 1}, None, {"0": "0"}),
}
DRAWN = tuple(name for name in FLAVORS if name != "untiered")
DEDICATED = ("pinned", "mixed")
"""A host has room for one server of these flavors."""


def start(shell: Shell, one_node_cloud: Path) -> Cloud:
    """Have the hosts with all options, flavors, ports and the watch."""
    two_hosts.start(shell, one_node_cloud, has_tiers=True)
    for host in HOSTS:
        on = "" if host == "compute1" else f"on {host} "
        reported = [REPORT, RATIO, EXTEND, *([NODES] if host == NODES_HOST else [])]
        two_hosts.change(shell, [MORE_PATIENCE], reported, on.removeprefix("on ").strip())
        shell.output_of(f"{on}systemctl restart nova-compute")
        shell.output_of(f"{on}systemctl start openvswitch-switch neutron-openvswitch-agent")
        add(shell, WATCH, "/etc/supervisor.d/watch.conf", on.removeprefix("on ").strip())
        shell.output_of(f"{on}supervisorctl update")
    two_hosts.change(shell, [QUERY, QUERY_NODES, EXTEND], [])
    shell.output_of("systemctl restart nova-api nova-conductor nova-scheduler")
    _make_flavors_and_ports(shell)
    return Cloud(shell)


def _make_flavors_and_ports(shell: Shell) -> None:
    """Make flavors, and ports with a policy, which stay all day."""
    list_providers = "openstack resource provider list -f value -c name"
    # The hosts have reported their nodes, and the agents what they have.
    for name in (f"{NODES_HOST}_NUMA0", *(f"{host}:{AGENT}:br-physnet0" for host in HOSTS)):
        shell.output_of(f"{list_providers} --name '{name}'", name)
    commands = [*_COMMANDS.splitlines()]
    for name in FLAVORS.keys() - TIERS.keys():
        specs = FLAVORS[name].extra_specs.items()
        properties = " ".join(f"--property {key}={value}" for key, value in specs)
        create = f"flavor create {name} --vcpus {FLAVORS[name].vcpus} --ram 128 --disk 0"
        commands.append(f"{create} {properties}")
    commands += [f"{NEW_PORT} {port}" for port in PORTS]
    text = "\n".join(commands)
    shell.output_of(f"openstack <<'END' || true\n{text}\nEND")  # its status says nothing
    shell.output_of("openstack port list -f value -c Name | sort", "\n".join(PORTS))
    shell.output_of("openstack flavor list -f value -c Name | sort", "\n".join(sorted(FLAVORS)))
