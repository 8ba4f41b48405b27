"""NUMA nodes, with all services as processes: pins are in the allocated nodes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.nova.numa.agreement import Node, cells_of, check_agreement, topology_of
from tests.processes.cloud import Cloud
from tests.processes.hosts import TWO_NODES, aware

STILL = "CUSTOM_STILL"
PINNED = {"hw:cpu_policy": "dedicated"}
TWO = {**PINNED, "hw:numa_nodes": "2"}
ONE_AND_THREE = {
    **TWO,
    "hw:numa_cpus.0": "0",
    "hw:numa_mem.0": "128",
    "hw:numa_cpus.1": "1-3",
    "hw:numa_mem.1": "384",
}
DISK = pytest.mark.parametrize(
    "disk_gb", [pytest.param(1, id="disk"), pytest.param(0, id="no disk")]
)


@pytest.fixture(scope="module")
def hosts(cloud: Cloud) -> tuple[str, str]:
    names = ("one", "two")
    with ThreadPoolExecutor() as threads:
        starts = [
            threads.submit(cloud.start_compute, name, aware(True), env=TWO_NODES) for name in names
        ]
    for start in starts:
        start.result()
    return names


@pytest.fixture
def still(cloud: Cloud, hosts: tuple[str, str]) -> Iterator[str]:
    """A host whose nova-compute does not update its resources by itself, with the trait STILL.

    If an update meets a resize on the own host before ``finish_resize``, Nova pins the new CPUs
    twice: ``_update_available_resource`` applies the migration context (bug 1953359), and
    ``_update_usage_from_migration`` counts the new CPUs again. The update fails, and so does a
    confirmation before the next update. Without an update, the CPUs stay pinned, so each test has
    such a host.
    """
    name, rounds = f"still{len(cloud.computes)}", {"DEFAULT": {"update_resources_interval": -1}}
    cloud.start_compute(name, aware(True), rounds, env=TWO_NODES)
    cloud.add_trait(name, STILL)
    yield name
    cloud.delete(*cloud.servers())
    cloud.remove_compute(name)


def pinned(host: str) -> set[int]:
    """Return the pinned CPUs of a host, as Nova's database counts them."""
    return {cpu for cell in cells_of(host).values() for cpu in cell.pinned_cpus}


def pins(server: str) -> set[int]:
    """Return the CPUs to which the vCPUs of a server are pinned."""
    return {cpu for cell in topology_of(server).cells for cpu in cell.cpu_pinning.values()}


def test_asymmetric_servers_fit_in_a_single_order(cloud: Cloud, hosts: tuple[str, str]) -> None:
    """Three CPUs of one node are in use, so the guest cell of three vCPUs is on the other node."""
    one, _ = hosts
    first = cloud.boot(cloud.flavor(PINNED, vcpus=3), host=one)
    ((_, taken),) = check_agreement(cloud, first)
    second = cloud.boot(cloud.flavor(ONE_AND_THREE, vcpus=4), host=one)
    assert check_agreement(cloud, second) == [(one, taken), (one, 1 - taken)]


def test_many_at_once(cloud: Cloud, hosts: tuple[str, str]) -> None:
    """Each host has four dedicated CPUs on each node: room for two of the servers."""
    flavor = cloud.flavor(TWO, vcpus=4)
    servers = cloud.boot_many(flavor, 4)
    nodes_of_servers = [check_agreement(cloud, server) for server in servers]
    expected: list[Node] = [(host, cell) for host in hosts for cell in (0, 1)] * 2
    assert sorted(node for nodes in nodes_of_servers for node in nodes) == sorted(expected)


@DISK
def test_cold_migration_and_back(cloud: Cloud, hosts: tuple[str, str], disk_gb: int) -> None:
    """A server without a disk has allocations of both hosts until the move is confirmed."""
    one, two = hosts
    server = cloud.boot(cloud.flavor(ONE_AND_THREE, vcpus=4, disk_gb=disk_gb), host=one)
    before = check_agreement(cloud, server)
    assert {host for host, _ in before} == {one}
    cloud.act(server, {"migrate": {"host": two}}, "VERIFY_RESIZE")
    assert {host for host, _ in check_agreement(cloud, server, others=not disk_gb)} == {two}
    cloud.act(server, {"revertResize": None}, "ACTIVE")
    # A periodic update of Nova that meets the revert counts the server on no host, and the next
    # update counts the server again. The destination counts the reverted move until its update.
    cloud.wait_until(lambda: pinned(one) == pins(server), "the source counts the CPUs again")
    cloud.wait_until(lambda: not pinned(two), "the destination counts no CPUs")
    assert check_agreement(cloud, server) == before
    cloud.act(server, {"migrate": {"host": two}}, "VERIFY_RESIZE")
    cloud.act(server, {"confirmResize": None}, "ACTIVE")
    cloud.wait_until(lambda: pinned(two) == pins(server), "the destination counts the CPUs")
    assert {host for host, _ in check_agreement(cloud, server)} == {two}


def test_amounts_of_both_kinds_of_cpu(cloud: Cloud, hosts: tuple[str, str]) -> None:
    """A flavor that Nova itself refuses: nova-conductor, without cpu-tiers, need not read it.

    Another server has two of the four dedicated CPUs of each node of the first host. Beside it and
    the server with one CPU of each node, no two CPUs of a node are left, so the resize takes the
    second host.
    """
    one, two = hosts
    amounts = {"resources:VCPU": "2", "resources:PCPU": "2", "hw:numa_nodes": "2"}
    server = cloud.boot(cloud.flavor(amounts, vcpus=4), host=one)
    assert {host for host, _ in check_agreement(cloud, server)} == {one}
    other = cloud.boot(cloud.flavor(TWO, vcpus=4), host=one)
    large = cloud.flavor({**amounts, "resources:PCPU": "4"}, vcpus=6)
    cloud.act(server, {"resize": {"flavorRef": large}}, "VERIFY_RESIZE")
    assert {host for host, _ in check_agreement(cloud, server)} == {two}
    cloud.act(server, {"confirmResize": None}, "ACTIVE")
    cloud.delete(other)
    cloud.act(server, {"migrate": None}, "VERIFY_RESIZE")
    cloud.act(server, {"confirmResize": None}, "ACTIVE")
    check_agreement(cloud, server)
    assert [len(cell.pcpuset) for cell in topology_of(server).cells] == [2, 2]


@DISK
def test_a_resize_within_the_host(cloud: Cloud, still: str, disk_gb: int) -> None:
    """Each server has three CPUs of a node with four, so the second is on the other node.

    The other hosts lack the trait of the large flavor. They are not disabled instead: in
    nova-compute the disabling and the periodic update then change the traits of one provider at
    the same time, and Nova logs one of several errors.
    """
    server = cloud.boot(cloud.flavor(PINNED, vcpus=3, disk_gb=disk_gb), host=still)
    ((_, before),) = check_agreement(cloud, server)
    specs = {**PINNED, "hw:mem_page_size": "2048", f"trait:{STILL}": "required"}
    large = cloud.flavor(specs, vcpus=3, disk_gb=disk_gb)
    cloud.act(server, {"resize": {"flavorRef": large}}, "VERIFY_RESIZE")
    assert check_agreement(cloud, server) == [(still, 1 - before)]
    assert len(pinned(still)) == 3 + 3
    cloud.act(server, {"confirmResize": None}, "ACTIVE")
    assert check_agreement(cloud, server) == [(still, 1 - before)]
    assert [cell.pagesize for cell in topology_of(server).cells] == [2048]
