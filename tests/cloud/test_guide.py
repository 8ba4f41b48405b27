"""docs/install/install.rst word for word, and the tiers behind it.

The tests are steps of one life of a cloud, and run in their order.
"""

import json
import time

import pytest

from tests.cloud.gold import BOOT
from tests.cloud.page import Shell, steps

FLAVOR = "openstack flavor create --vcpus 1 --ram 128 --disk 0"
CONF = "/etc/nova"
WINDOW = 20
"""Seconds in which the CPU time of the guests is measured."""


def cpu_times(shell: Shell) -> dict[str, int]:
    """Return the CPU time of each guest in nanoseconds, by the uuid of the server."""
    script = (
        "for each in $(virsh list --uuid); do"
        " echo $each $(virsh domstats --cpu-total $each | sed -n 's/.*cpu.time=//p'); done"
    )
    pairs = (line.split() for line in shell.output_of(script).splitlines())
    return {uuid: int(nanoseconds) for uuid, nanoseconds in pairs}


def allocations(shell: Shell) -> dict[str, dict[str, int]]:
    """Return what each server on the host has allocated, by uuid."""
    shown = shell.output_of("openstack resource provider show $UUID --allocations -f json")
    by_server: dict[str, dict[str, dict[str, int]]] = json.loads(shown)["allocations"]
    return {uuid: body["resources"] for uuid, body in by_server.items()}


def test_a_server_from_before(shell: Shell) -> None:
    """A running server whose flavor had no meaning for Placement yet."""
    shell.output_of(f"{FLAVOR} old --property quota:cpu_shares=100")
    shell.output_of(f"{BOOT} old --flavor old --image halted")


def test_the_guide(shell: Shell) -> None:
    for step in steps("docs/install/install.rst"):
        print(f"$ {step.command}\n{shell.follow(step)}")  # noqa: T201  # what a person sees


def test_the_server_older_than_the_tiers_has_shares(shell: Shell) -> None:
    """The restart in the guide gave the server 100 x 1 shares, and did not touch the guest."""
    old = shell.output_of("openstack server show old -f value -c id")
    assert allocations(shell)[old] == {"VCPU": 1, "MEMORY_MB": 128, "CUSTOM_VCPU_SHARES": 100}
    shell.output_of("openstack server delete old --wait")


def test_six_servers_share_a_cpu(shell: Shell) -> None:
    """Of 100 + 2 x 50 + 3 x 25 = 275 shares, a vCPU gets 0.3636, 0.1818 or 0.0909 of the CPU."""
    shell.output_of(f"{BOOT} silver --flavor silver --min 2 --max 2")
    shell.output_of(f"{BOOT} bronze --flavor bronze --min 3 --max 3")
    shares = {uuid: held["CUSTOM_VCPU_SHARES"] for uuid, held in allocations(shell).items()}
    assert sorted(shares.values()) == [25, 25, 25, 50, 50, 100]
    before = cpu_times(shell)
    time.sleep(WINDOW)
    used = {uuid: after - before[uuid] for uuid, after in cpu_times(shell).items()}
    measured = {uuid: nanoseconds / sum(used.values()) for uuid, nanoseconds in used.items()}
    print(sorted(measured.values()))  # noqa: T201  # for the log of a run
    expected = {uuid: number / 275 for uuid, number in shares.items()}
    assert measured == pytest.approx(expected, rel=0.1)
    # They would take the CPU from the tests that run beside.
    shell.output_of("virsh list --uuid | xargs --max-args 1 virsh suspend")


def test_the_seventh_server_finds_no_host(shell: Shell) -> None:
    """The host has 1 x 6 VCPU."""
    status, _ = shell.run(f"{BOOT} seventh --flavor bronze")
    assert status == 1
    fault = shell.output_of("openstack server show seventh -f json -c fault")
    assert "No valid host was found" in fault
    shell.output_of("openstack server delete seventh --wait")


def test_the_apis_and_the_databases_tell_the_same(shell: Shell) -> None:
    """As docs/admin/reading.rst says: one snapshot from two sources, but for its time."""
    files = "--config-file /etc/nova/nova.conf --config-file /etc/placement/placement.conf"
    snapshots = []
    for source in ("--no-databases", "--databases"):
        shell.output_of(f"cpu-tiers {files} cloud snapshot /root/cloud.json {source}")
        snapshot = json.loads(shell.output_of("cat /root/cloud.json; rm /root/cloud.json"))
        flavors = snapshot.pop("server_flavors")  # in the order of the servers
        for server in snapshot["servers"].values():
            server["flavor"] = flavors[server["flavor"]]
        snapshots.append(snapshot)
    by_apis, by_databases = snapshots
    assert by_apis.pop("taken") <= by_databases.pop("taken")
    assert len(by_apis["servers"]) == len(by_apis["consumers"]) == 6
    assert by_databases == by_apis


def test_more_shares_than_a_host_has(shell: Shell) -> None:
    """A host of one CPU gives a server 100 shares at most; the fault names the class."""
    shell.output_of(f"{FLAVOR} huge --property quota:cpu_shares_multiplier=101")
    shell.output_of("openstack server delete gold1 --wait")
    status, _ = shell.run(f"{BOOT} huge --flavor huge")
    assert status == 1
    assert "CUSTOM_VCPU_SHARES" in shell.output_of("openstack server show huge -f json -c fault")
    shell.output_of("openstack server delete huge --wait")


def test_a_restart_changes_nothing(shell: Shell) -> None:
    before = allocations(shell)
    shell.output_of("systemctl restart nova-compute")
    time.sleep(10)
    assert allocations(shell) == before
    shell.output_of("cpu-tiers host audit --ignore short --ignore steal")


def test_the_way_back(shell: Shell) -> None:
    """As "Leave cpu-tiers" and "Go back" in docs/admin/compute.rst say, without servers."""
    shell.output_of("openstack server delete --wait $(openstack server list -f value -c ID)")
    shell.output_of(f"sed -i '/^weight_classes/d; /^query_placement/d' {CONF}/nova.conf")
    shell.output_of(f"sed -i '/^refuse_faulty_flavors/d' {CONF}/nova.conf")
    shell.output_of("systemctl restart nova-scheduler nova-api")
    shell.output_of("openstack flavor unset gold --property quota:cpu_shares_multiplier")
    shell.output_of("openstack flavor set gold --property quota:cpu_shares=100")
    shell.output_of("systemctl stop nova-compute")
    delete = "openstack resource provider inventory delete --resource-class"
    shell.output_of(f"{delete} CUSTOM_VCPU_SHARES $UUID")
    shell.output_of(f"sed -i '/^report_vcpu_shares/d' {CONF}/nova-compute.conf")
    shell.output_of("systemctl start nova-compute")
    traits = "openstack --os-placement-api-version 1.6 resource provider trait list -f value $UUID"
    shell.output_of(f"{traits} | grep -c CUSTOM_ || true", "0")


def test_nova_without_the_package(shell: Shell) -> None:
    shell.output_of(f"sed -i s/cpu_tiers.Libvirt/libvirt.Libvirt/ {CONF}/nova-compute.conf")
    shell.output_of("pip uninstall --yes cpu-tiers")
    shell.output_of("systemctl restart nova-api nova-scheduler nova-compute")
    shell.output_of("openstack resource class delete CUSTOM_VCPU_SHARES")
    shell.output_of(f"{BOOT} plain --flavor gold")
    (held,) = allocations(shell).values()
    assert held == {"VCPU": 1, "MEMORY_MB": 128}
