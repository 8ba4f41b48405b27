"""Two hosts: an upgrade host by host, and moves of servers meanwhile and afterwards.

The tests are steps of one life of a cloud, and run in their order.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cloud.configuration import DRIVER, QUERY, REPORT, add
from tests.cloud.page import Shell

SERVER = "openstack --os-compute-api-version 2.90 server"
PLAIN = {"VCPU": 1, "MEMORY_MB": 128}
GOLD = {**PLAIN, "CUSTOM_VCPU_SHARES": 100}


def held(shell: Shell, server: str) -> dict[str, dict[str, int]]:
    """Return the allocations of a server, by the name of the host."""
    uuid = shell.output_of(f"{SERVER} show {server} -f value -c id")
    found = {}
    for host in ("compute1", "compute2"):
        provider = shell.output_of(
            f"openstack resource provider list --name {host} -f value -c uuid"
        )
        shown = shell.output_of(
            f"openstack resource provider show {provider} --allocations -f json"
        )
        if uuid in (allocations := json.loads(shown)["allocations"]):
            found[host] = allocations[uuid]["resources"]
    return found


def weight(shell: Shell, host: str) -> str:
    """Return the weight of the only guest of a host."""
    on = "on compute2 " if host == "compute2" else ""
    command = f"{on}bash -c 'virsh schedinfo $(virsh list --name) | grep cpu_shares'"
    return shell.output_of(command).split()[-1]


def wait_for(shell: Shell, host: str, status: str = "ACTIVE") -> None:
    """Wait until the server is on a host, in a state, and without a task."""
    columns = "-c OS-EXT-SRV-ATTR:host -c OS-EXT-STS:task_state -c status"
    shell.output_of(f"{SERVER} show moving -f value {columns}", f"{host}\nNone\n{status}\n")


@pytest.fixture(scope="module", autouse=True)
def two_hosts(shell: Shell, one_node_cloud: Path) -> None:
    """cpu-tiers is installed on both hosts, and only the first host has its driver."""
    shell.output_of("pip install --force-reinstall --no-deps cpu-tiers")
    add(shell, f"{DRIVER}\n{REPORT}", "/etc/nova/nova-compute.conf")
    shell.output_of("systemctl restart nova-api nova-scheduler nova-compute")
    shell.output_of("openstack flavor create moving --vcpus 1 --ram 128 --disk 0")
    shell.output_of(f"{SERVER} create --nic none --wait --image $IMAGE --flavor moving first")
    shell.output_of("mkdir /etc/nova/provider_config")
    subprocess.run([one_node_cloud, "add-host", "compute2"], check=True)
    shell.output_of("openstack flavor set moving --property quota:cpu_shares_multiplier=100")


def test_a_host_begins_with_nothing_of_the_first(shell: Shell) -> None:
    assert shell.output_of("virsh list --all --name").strip()
    assert not shell.output_of("on compute2 virsh list --all --name").strip()
    assert "provider_config" not in shell.output_of("on compute2 ls /etc/nova")
    compute = shell.output_of("on compute2 cat /etc/nova/nova-compute.conf")
    assert DRIVER.splitlines()[-1] not in compute
    shell.output_of("rmdir /etc/nova/provider_config")
    shell.output_of(f"{SERVER} delete --wait first")


def test_a_host_with_novas_own_driver(shell: Shell) -> None:
    """During the upgrade, a server moves to a host without shares, and keeps its weight."""
    create = "--nic none --wait --host compute1 --image $IMAGE --flavor moving moving"
    shell.output_of(f"{SERVER} create {create}")
    assert held(shell, "moving") == {"compute1": PLAIN}
    assert weight(shell, "compute1") == "100"
    shell.output_of(f"{SERVER} migrate --live-migration --host compute2 moving")
    wait_for(shell, "compute2")
    assert held(shell, "moving") == {"compute2": PLAIN}
    assert weight(shell, "compute2") == "100"


def test_the_upgrade_of_the_second_host(shell: Shell) -> None:
    """The restart of the second host gives the server its shares."""
    add(shell, f"{DRIVER}\n{REPORT}", "/etc/nova/nova-compute.conf", "compute2")
    shell.output_of("on compute2 systemctl restart nova-compute")
    show = "openstack resource provider show --allocations -f value -c allocations"
    shell.output_of(
        f"{show} $(openstack resource provider list --name compute2 -f value -c uuid)",
        "...CUSTOM_VCPU_SHARES...",
    )
    assert held(shell, "moving") == {"compute2": GOLD}
    add(shell, QUERY, "/etc/nova/nova.conf")
    shell.output_of("systemctl restart nova-scheduler")


def test_live_migration(shell: Shell) -> None:
    shell.output_of(f"{SERVER} migrate --live-migration --host compute1 moving")
    wait_for(shell, "compute1")
    assert held(shell, "moving") == {"compute1": GOLD}
    assert weight(shell, "compute1") == "100"


def test_cold_migration(shell: Shell) -> None:
    shell.output_of(f"{SERVER} migrate --host compute2 moving")
    wait_for(shell, "compute2", "VERIFY_RESIZE")
    assert held(shell, "moving") == {"compute2": GOLD}
    shell.output_of(f"{SERVER} migrate revert moving")
    wait_for(shell, "compute1")
    assert held(shell, "moving") == {"compute1": GOLD}
    shell.output_of(f"{SERVER} migrate --host compute2 moving")
    wait_for(shell, "compute2", "VERIFY_RESIZE")
    shell.output_of(f"{SERVER} migrate confirm moving")
    wait_for(shell, "compute2")
    assert weight(shell, "compute2") == "100"


def test_evacuation(shell: Shell) -> None:
    """The second host has lost its power."""
    shell.output_of("kill -KILL $(</run/compute2.machine)")
    down = "openstack --os-compute-api-version 2.11 compute service set --down"
    shell.output_of(f"{down} compute2 nova-compute")
    shell.output_of(f"{SERVER} evacuate moving")
    wait_for(shell, "compute1")
    assert held(shell, "moving")["compute1"] == GOLD
    assert weight(shell, "compute1") == "100"
