"""Nova leaves the NUMA nodes with PCI devices to the servers that request PCI devices.

Nova's own functions of nova-scheduler choose among the candidates of a real Placement, for hosts
of equal NUMA cells, unless a test says otherwise. Two cells swap their roles in each test, so that
no order of Placement's answer can make both cases right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from nova import objects

from cpu_tiers.nova.options import CONF
from tests.nova.scheduler import plain_hosts
from tests.nova.scheduler.plain_hosts import choose, server
from tests.nova.scheduler.random_checks import Empty, placement
from tests.random_clouds.brute_force import Placement
from tests.random_clouds.hosts import Device, Host

CPUS = 4


@pytest.fixture(scope="module")
def empty() -> Iterator[Empty]:
    objects.register_all()
    with placement() as one:
        yield one


def host(cells: Sequence[int], devices: Mapping[int | None, int]) -> Host:
    """Return a host with cells of 4 CPUs.

    :param cells: the numbers of the cells.
    :param devices: the number of free PCI devices of the alias by cell; ``None`` stands for
        devices on no known cell.
    """
    return plain_hosts.host(
        [
            plain_hosts.cell(number, range(CPUS * place, CPUS * (place + 1)))
            for place, number in enumerate(cells)
        ],
        [
            Device(
                provider=f"cn_0000:0{place}:00.0",
                node=node,
                total=max(count, 1),
                taken=0 if count else 1,
                functions=count,
            )
            for place, (node, count) in enumerate(devices.items(), start=1)
        ],
    )


def take(of: Host, cell: int, vcpus: int) -> Host:
    """Let a server that exists have vCPUs of a cell."""
    (found,) = (each for each in of.cells if each.id == cell)
    found.vcpus = vcpus
    return of


def cells(of: Sequence[Sequence[Placement]]) -> list[tuple[int, ...]]:
    """Return the host cells of each server."""
    return [tuple(cell for cell, _ in selections[0].cells) for selections in of]


@pytest.fixture(params=[(0, 1), (1, 0)], ids=["0 and 1", "1 and 0"])
def pair(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Two cells of a host, in both orders."""
    one, other = request.param
    return one, other


def test_a_node_without_devices_is_best(empty: Empty, pair: tuple[int, int]) -> None:
    one, other = pair
    assert cells(choose(empty, host([0, 1], {one: 1}), server(2))) == [(other,)]


@pytest.mark.parametrize("policy", ["preferred", "socket"])
def test_a_server_that_requests_a_device_is_on_the_node_of_the_device(
    empty: Empty, pair: tuple[int, int], policy: str
) -> None:
    one, _ = pair
    of = server(2, devices=1, policy=policy)
    assert cells(choose(empty, host([0, 1], {one: 1}), of)) == [(one,)]


def test_a_node_with_fewer_devices_is_better(empty: Empty, pair: tuple[int, int]) -> None:
    one, other = pair
    on = host([0, 1], {one: 1, other: 3})
    assert cells(choose(empty, on, server(2))) == [(one,)]
    assert cells(choose(empty, on, server(2, devices=1))) == [(other,)]


def test_devices_that_are_taken_do_not_count(empty: Empty, pair: tuple[int, int]) -> None:
    one, other = pair
    assert cells(choose(empty, host([0, 1], {one: 1, other: 0}), server(2))) == [(other,)]


def test_devices_of_no_known_node_do_not_count(empty: Empty, pair: tuple[int, int]) -> None:
    one, other = pair
    assert cells(choose(empty, host([0, 1], {one: 1, None: 5}), server(2))) == [(other,)]


def test_a_node_with_devices_is_the_last_to_be_filled_up(
    empty: Empty, pair: tuple[int, int]
) -> None:
    """As in Nova, devices count more than CPUs: half of the node with the device is taken."""
    one, other = pair
    on = take(host([0, 1], {one: 1}), one, 2)
    assert cells(choose(empty, on, server(2))) == [(other,)]


def test_gaps_count_more_than_how_many_devices(empty: Empty, pair: tuple[int, int]) -> None:
    """Virtual functions are on many nodes; the server fills up the node that is half taken."""
    one, other = pair
    on = take(host([0, 1], {one: 8, other: 7}), one, 2)
    assert cells(choose(empty, on, server(2))) == [(one,)]


def test_a_node_with_devices_is_better_than_no_node(empty: Empty, pair: tuple[int, int]) -> None:
    one, other = pair
    on = take(host([0, 1], {one: 1}), other, 3)
    assert cells(choose(empty, on, server(2))) == [(one,)]


def test_a_guest_of_two_nodes(empty: Empty) -> None:
    for with_device, others in ((1, (3, 6)), (3, (1, 6)), (6, (1, 3))):
        on = host([1, 3, 6], {with_device: 2})
        assert cells(choose(empty, on, server(1, 1))) == [others]


def test_each_server_of_a_request(empty: Empty, pair: tuple[int, int]) -> None:
    """Each cell has room for two servers."""
    one, other = pair
    chosen = choose(empty, host([0, 1], {one: 1}), server(2), 4)
    assert cells(chosen) == [(other,), (other,), (one,), (one,)]


def test_each_server_of_a_request_with_devices(empty: Empty, pair: tuple[int, int]) -> None:
    """After the only device of its node is taken, that node is as good as any without devices."""
    one, other = pair
    chosen = choose(empty, host([0, 1, 2], {one: 1, other: 2}), server(2, devices=1), 3)
    # First where most devices are, then on the same node, which is half taken, then on the last.
    assert cells(chosen) == [(other,), (other,), (one,)]


def test_the_alternate_node_leaves_the_device_free(empty: Empty) -> None:
    """nova-compute refuses the first choice: the device is still left to others."""
    for with_device, others in ((0, {1, 2}), (1, {0, 2}), (2, {0, 1})):
        (selections,) = choose(empty, host([0, 1, 2], {with_device: 1}), server(2))
        own, alternate = (cell for each in selections[:2] for cell, _ in each.cells)
        assert {own, alternate} == others


@pytest.mark.parametrize("pack", [False, True], ids=["spread", "pack"])
def test_of_equal_nodes_the_first_of_the_host(empty: Empty, pack: bool) -> None:
    CONF.set_override("packing_host_numa_cells_allocation_strategy", pack, "compute")
    try:
        for numbers in ([0, 1], [2, 5, 7], [3, 4, 8, 9]):
            assert cells(choose(empty, host(numbers, {}), server(2))) == [(numbers[0],)]
            two = tuple(numbers[:2])
            assert cells(choose(empty, host(numbers, {}), server(2, 2))) == [two]
    finally:
        CONF.clear_override("packing_host_numa_cells_allocation_strategy", "compute")


@pytest.mark.parametrize("scoring", ["literal", "best-fit", "fragmentation"])
def test_no_scoring_prefers_the_node_of_a_device(
    empty: Empty, pair: tuple[int, int], scoring: str
) -> None:
    """A server of 2 CPUs would leave no gap on the node with the device."""
    one, other = pair
    on = take(host([0, 1], {one: 1}), one, 2)
    chosen = choose(empty, on, server(2), resource_provider_scoring=scoring)
    assert cells(chosen) == [(other,)]
