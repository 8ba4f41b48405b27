"""Ports with a minimum bandwidth, reported by agents of Neutron; then the same with NUMA nodes.

The tests are steps of one life of a cloud, and run in their order.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.configuration import DRIVER, QUERY, REPORT, add
from tests.cloud.page import Shell

AGENT = "Open vSwitch agent"
DEVICE = f"{AGENT}:br-physnet0"
SERVER = "openstack --os-compute-api-version 2.90 server"
FLAVOR = "openstack flavor create --disk 0"
TIER = "--property quota:cpu_shares_multiplier"
NUMA = """\
[compute]
cpu_dedicated_set = 1
enable_numa_reporting_to_placement = true
extend_cpu_policies = true"""
QUERY_NUMA = """\
[filter_scheduler]
query_placement_for_numa = true
[compute]
extend_cpu_policies = true"""

GOLD = {"VCPU": 1, "MEMORY_MB": 64, "CUSTOM_VCPU_SHARES": 100}
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 3000, "NET_BW_IGR_KILOBIT_PER_SEC": 2000}
PACKETS = {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 100}

PAGES = Path("/proc/sys/vm/nr_hugepages")
PAGES_WANTED = 64

HELD = """
import json, openstack
placement = openstack.connect().placement
held = {}
for provider in placement.get("/resource_providers").json()["resource_providers"]:
    path = f"/resource_providers/{provider['uuid']}/allocations"
    for consumer, body in placement.get(path).json()["allocations"].items():
        held.setdefault(consumer, {})[provider["name"]] = body["resources"]
print(json.dumps(held))
"""
CANDIDATES = """
import json, openstack, sys
query = json.load(open("query.json"))["query"]
path = f"/allocation_candidates?{query}"
print(json.dumps(openstack.connect().placement.get(path, microversion="1.36").json()))
"""


def python(shell: Shell, script: str) -> str:
    """Return what a script prints in the cloud."""
    return shell.output_of(f"python3 - <<'END' 2>/dev/null\n{script}\nEND")


def documents(shell: Shell, command: str) -> Any:
    """Return the JSON that a command prints."""
    return json.loads(shell.output_of(f"{command} -f json 2>/dev/null"))


def held(shell: Shell) -> dict[str, dict[str, dict[str, int]]]:
    """Return the allocations by the uuid of the consumer and the name of the provider."""
    by_consumer: dict[str, dict[str, dict[str, int]]] = json.loads(python(shell, HELD))
    return by_consumer


def on_port(host: str, ports: int = 1) -> dict[str, dict[str, int]]:
    """Return what ports of the policy claim of a host."""
    return {
        f"{host}:{AGENT}": {name: ports * amount for name, amount in PACKETS.items()},
        f"{host}:{DEVICE}": {name: ports * amount for name, amount in BANDWIDTH.items()},
    }


def served_by(shell: Shell, port: str) -> tuple[str, set[str]]:
    """Return the host of a port, and the names of the providers in its profile."""
    shown = documents(shell, f"openstack port show {port}")
    providers = documents(shell, "openstack resource provider list")
    names = {provider["uuid"]: provider["name"] for provider in providers}
    allocation = shown["binding_profile"]["allocation"]
    assert allocation.keys() == {
        group["id"] for group in shown["resource_request"]["request_groups"]
    }
    return shown["binding_host_id"], {names[uuid] for uuid in allocation.values()}


def assert_on(shell: Shell, host: str) -> None:
    """Check that a host, and no other host, has the resources of flavor and port."""
    uuid = shell.output_of(f"{SERVER} show gold1 -f value -c id")
    assert held(shell)[uuid] == {host: GOLD, **on_port(host)}
    assert served_by(shell, "port1") == (host, {f"{host}:{AGENT}", f"{host}:{DEVICE}"})


def wait_for(shell: Shell, host: str, status: str = "ACTIVE") -> None:
    """Wait until the server is on a host, in a state, and without a task."""
    columns = "-c OS-EXT-SRV-ATTR:host -c OS-EXT-STS:task_state -c status"
    shell.output_of(f"{SERVER} show gold1 -f value {columns}", f"{host}\nNone\n{status}\n")


@pytest.fixture(scope="module", autouse=True)
def two_hosts(shell: Shell, one_node_cloud: Path) -> None:
    """Two hosts with the driver of cpu-tiers and with agents, and a policy for ports."""
    shell.output_of("pip install --force-reinstall --no-deps cpu-tiers")
    subprocess.run([one_node_cloud, "add-host", "compute2"], check=True)
    for host in ("", "compute2"):
        add(shell, f"{DRIVER}\n{REPORT}", "/etc/nova/nova-compute.conf", host)
        on = f"on {host} " if host else ""
        shell.output_of(f"{on}systemctl restart nova-compute")
        shell.output_of(f"{on}systemctl start openvswitch-switch neutron-openvswitch-agent")
    add(shell, QUERY, "/etc/nova/nova.conf")
    shell.output_of("systemctl restart nova-api nova-scheduler")
    network = "--provider-network-type vlan --provider-physical-network physnet0"
    shell.output_of(f"openstack network create {network} --provider-segment 100 net1")
    subnet = "--network net1 --subnet-range 10.30.0.0/24 --no-dhcp"
    shell.output_of(f"openstack subnet create {subnet} subnet1")
    shell.output_of("openstack network qos policy create guaranteed")
    for rule in (
        "minimum-bandwidth --min-kbps 3000 --egress",
        "minimum-bandwidth --min-kbps 2000 --ingress",
        "minimum-packet-rate --min-kpps 100 --any",
    ):
        shell.output_of(f"openstack network qos rule create guaranteed --type {rule}")
    shell.output_of(f"{FLAVOR} gold --vcpus 1 --ram 64 {TIER}=100")
    shell.output_of("openstack port create port1 --network net1 --qos-policy guaranteed")
    shell.output_of("cd $(mktemp -d)")


def test_providers_of_the_agents(shell: Shell) -> None:
    """Neutron has written what cpu-tiers would write: 10000 kbps, 1000 kpps."""
    for host in ("compute1", "compute2"):
        name = f"{host}:{DEVICE}"
        shell.output_of(f"openstack resource provider list --name '{name}' -f value -c name", name)
        uuid = f"$(openstack network agent list --host {host} -f value -c ID)"
        shell.output_of(f"openstack network agent show {uuid} -f json > {host}.json")
    shown = documents(shell, "cpu-tiers networking show compute1.json compute2.json")
    totals = {
        provider["name"]: {name: body["total"] for name, body in provider["inventories"].items()}
        for provider in shown
    }
    for host in ("compute1", "compute2"):
        assert totals[f"{host}:{AGENT}"] == dict.fromkeys(PACKETS, 1000)
        assert totals[f"{host}:{DEVICE}"] == dict.fromkeys(BANDWIDTH, 10000)
    assert documents(shell, "cpu-tiers networking sync compute1.json compute2.json") == []


def test_candidates_for_a_port(shell: Shell) -> None:
    """A host would have 500 of 600 shares, 7000 of 10000 kbps and 900 of 1000 kpps left."""
    shell.output_of("openstack port show port1 -f json > port1.json")
    shell.output_of("openstack flavor show gold -f json > gold.json")
    shell.output_of("cpu-tiers request show gold.json --port port1.json -f json > query.json")
    shell.output_of(f"python3 - <<'END' > candidates.json\n{CANDIDATES}\nEND")
    weigh = "cpu-tiers weigh gold.json --port port1.json --candidates candidates.json"
    hosts = documents(shell, weigh)
    assert len(hosts) == 2
    for host in hosts:
        parts = host["resources"]
        assert parts["CUSTOM_VCPU_SHARES"] == pytest.approx(500 / 600)
        assert parts["NET_BW_EGR_KILOBIT_PER_SEC"] == pytest.approx(0.7)
        assert parts["NET_PACKET_RATE_KILOPACKET_PER_SEC"] == pytest.approx(0.9)


def test_a_server_on_a_port(shell: Shell) -> None:
    create = "--flavor gold --image halted --port port1 --host compute1 --wait gold1"
    shell.output_of(f"{SERVER} create {create}")
    assert_on(shell, "compute1")
    shown = shell.output_of("virsh schedinfo $(virsh list --name) | grep cpu_shares")
    assert shown.split()[-1] == "100"
    shell.output_of("openstack port show port1 -f value -c status", "ACTIVE")


def test_healing_of_a_lost_part(shell: Shell) -> None:
    """Somebody has removed the bandwidth of the port from the allocations of the server."""
    uuid = shell.output_of(f"{SERVER} show gold1 -f value -c id")
    device = f"$(openstack resource provider list --name 'compute1:{DEVICE}' -f value -c uuid)"
    unset = "openstack --os-placement-api-version 1.12 resource provider allocation unset"
    shell.output_of(f"{unset} --provider {device} {uuid}")
    assert held(shell)[uuid] == {"compute1": GOLD, f"compute1:{AGENT}": PACKETS}
    (plan,) = documents(shell, "cpu-tiers allocation heal --plan")
    assert (plan["adds"], plan["fits"]) == (BANDWIDTH, True)
    shell.output_of("cpu-tiers allocation heal --apply")
    assert_on(shell, "compute1")
    assert documents(shell, "cpu-tiers allocation heal --plan") == []


def test_live_migration(shell: Shell) -> None:
    shell.output_of(f"{SERVER} migrate --live-migration --host compute2 gold1")
    wait_for(shell, "compute2")
    assert_on(shell, "compute2")


def test_cold_migration(shell: Shell) -> None:
    shell.output_of(f"{SERVER} migrate --host compute1 gold1")
    wait_for(shell, "compute1", "VERIFY_RESIZE")
    assert_on(shell, "compute1")
    shell.output_of(f"{SERVER} migrate revert gold1")
    wait_for(shell, "compute2")
    assert_on(shell, "compute2")
    shell.output_of(f"{SERVER} migrate --host compute1 gold1")
    wait_for(shell, "compute1", "VERIFY_RESIZE")
    shell.output_of(f"{SERVER} migrate confirm gold1")
    wait_for(shell, "compute1")
    assert_on(shell, "compute1")


def test_a_policy_for_a_bound_port(shell: Shell) -> None:
    """The second port gets its policy when the server has the port already.

    The server is stopped, because a running guest of the image does not release a port.
    """
    shell.output_of(f"{SERVER} stop gold1")
    wait_for(shell, "compute1", "SHUTOFF")
    shell.output_of("openstack port create port2 --network net1")
    shell.output_of(f"{SERVER} add port gold1 port2")
    shell.output_of("openstack port set port2 --qos-policy guaranteed")
    (healed,) = documents(shell, "cpu-tiers allocation heal --apply")
    assert healed["adds"] == {**BANDWIDTH, **PACKETS}
    uuid = shell.output_of(f"{SERVER} show gold1 -f value -c id")
    assert held(shell)[uuid] == {"compute1": GOLD, **on_port("compute1", ports=2)}
    assert served_by(shell, "port2")[0] == "compute1"
    shell.output_of(f"{SERVER} remove port gold1 port2")
    shell.output_of("openstack port show port2 -f value -c binding_vif_type", "unbound")
    assert_on(shell, "compute1")
    shell.output_of(f"{SERVER} start gold1")
    wait_for(shell, "compute1")


def test_a_port_that_does_not_fit(shell: Shell) -> None:
    """Three servers have 9000 of 10000 kbps; the fault of the fourth does not name shares."""
    for number in (2, 3, 4):
        port = f"--network net1 --qos-policy guaranteed more{number}"
        shell.output_of(f"openstack port create {port}")
        create = f"--flavor gold --image halted --port more{number} --host compute1 --wait"
        status, _ = shell.run(f"{SERVER} create {create} more{number}")
        assert status == (1 if number == 4 else 0)
    fault = shell.output_of(f"{SERVER} show more4 -f json -c fault")
    assert "No valid host was found" in fault
    assert "CUSTOM_VCPU_SHARES" not in fault


def test_delete(shell: Shell) -> None:
    shell.output_of(f"{SERVER} delete --wait $(openstack server list -f value -c ID)")
    assert held(shell) == {}
    profile = shell.output_of("openstack port show port1 -f value -c binding_profile")
    assert "allocation" not in profile


@pytest.fixture(scope="module")
def huge_pages() -> Iterator[int]:
    """The number of pages of 2 MiB of the machine, until the end of the tests."""
    before = PAGES.read_text()
    PAGES.write_text(str(int(before) + PAGES_WANTED))
    yield int(PAGES.read_text())
    PAGES.write_text(before)


@pytest.fixture(scope="module")
def numa_hosts(shell: Shell, huge_pages: int) -> None:
    """Two hosts that report NUMA nodes, and a nova-scheduler that requests NUMA nodes."""
    for host in ("", "compute2"):
        on = f"on {host} " if host else ""
        add(shell, NUMA, "/etc/nova/nova-compute.conf", host)
        shell.output_of(f"{on}systemctl restart nova-compute")
    add(shell, QUERY_NUMA, "/etc/nova/nova.conf")
    shell.output_of("systemctl restart nova-api nova-scheduler")
    node = "openstack resource provider list --name compute2_NUMA0 -f value -c name"
    shell.output_of(node, "compute2_NUMA0")


NODE = "compute1_NUMA0"
SMALL, LARGE = {f"{NODE}_PAGES_4": {"MEMORY_MB": 64}}, {f"{NODE}_PAGES_2048": {"MEMORY_MB": 64}}


@pytest.mark.usefixtures("numa_hosts")
@pytest.mark.parametrize(
    ("name", "extra_specs", "claims", "cpus"),
    [
        pytest.param(
            "node",
            f"--vcpus 1 {TIER}=100 --property hw:numa_nodes=1",
            {NODE: {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}, **SMALL},
            ["0"],
            id="a tier on a NUMA node",
        ),
        pytest.param(
            "pinned",
            "--vcpus 1 --property hw:cpu_policy=dedicated",
            {NODE: {"PCPU": 1}, **SMALL},
            ["1"],
            id="pinned",
        ),
        pytest.param(
            "mixed",
            f"--vcpus 2 {TIER}=50 --property hw:numa_nodes=1"
            " --property resources:VCPU=1 --property resources:PCPU=1",
            {NODE: {"VCPU": 1, "PCPU": 1, "CUSTOM_VCPU_SHARES": 50}, **SMALL},
            ["0", "1"],
            id="mixed: the shares of the one shared vCPU",
        ),
        pytest.param(
            "paged",
            f"--vcpus 1 {TIER}=100 --property hw:numa_nodes=1 --property hw:mem_page_size=2048",
            {NODE: {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}, **LARGE},
            ["0"],
            id="huge pages",
        ),
    ],
)
def test_a_numa_node_and_a_port(
    shell: Shell,
    huge_pages: int,
    name: str,
    extra_specs: str,
    claims: dict[str, dict[str, int]],
    cpus: list[str],
) -> None:
    """The flavor claims a NUMA node, the port a device; the server moves to the other host."""
    if name == "paged" and huge_pages < PAGES_WANTED:
        pytest.skip(f"the machine gave {huge_pages} huge pages")
    shell.output_of(f"{FLAVOR} {name} --ram 64 {extra_specs}")
    create = f"--flavor {name} --image halted --port port1 --host compute1 --wait"
    shell.output_of(f"{SERVER} create {create} gold1")
    uuid = shell.output_of(f"{SERVER} show gold1 -f value -c id")
    assert held(shell)[uuid] == {**claims, **on_port("compute1")}
    pins = shell.output_of("virsh vcpupin $(virsh list --name) | awk 'NR > 2 && NF {print $2}'")
    assert sorted(pins.split()) == cpus
    assert documents(shell, "cpu-tiers allocation heal --plan") == []

    shell.output_of(f"{SERVER} migrate --host compute2 gold1")
    wait_for(shell, "compute2", "VERIFY_RESIZE")
    shell.output_of(f"{SERVER} migrate confirm gold1")
    wait_for(shell, "compute2")
    moved = {key.replace("compute1", "compute2"): amounts for key, amounts in claims.items()}
    assert held(shell)[uuid] == {**moved, **on_port("compute2")}
    assert served_by(shell, "port1")[0] == "compute2"
    shell.output_of(f"{SERVER} delete --wait gold1")
    assert held(shell) == {}
