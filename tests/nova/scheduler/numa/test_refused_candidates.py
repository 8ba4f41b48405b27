"""Candidates that Nova's filters refuse for a server of a request, and for no later server."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects

from cpu_tiers.nova.notes import host_of
from cpu_tiers.nova.numa.candidate_cells import with_places
from cpu_tiers.nova.scheduler.numa import candidate_order
from tests.nova.scheduler import plain_hosts
from tests.nova.scheduler.plain_hosts import cell
from tests.nova.scheduler.random_checks import placement
from tests.random_clouds.hosts import Device


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def card(number: int) -> Device:
    """Return the PCI device of an alias, on the cell of its number."""
    return Device(provider=f"cn_0000:0{number}:00.0", node=number, total=1, taken=0, functions=1)


@pytest.mark.parametrize("policy", ["socket", "preferred"])
def test_the_second_server_takes_the_farther_device(policy: str) -> None:
    """Cloud 58 of seed 20261122.

    Cell 0 has no free CPU, so both servers are on cell 1. The first gets the device of cell 1.
    Nova refuses the device of cell 0 as long as the device of cell 1 is free.
    """
    cells = (cell(0, [0, 1]), cell(1, [10, 11, 12, 13]))
    cells[0].vcpus = 2
    on = plain_hosts.host(cells, [card(0), card(1)])
    with placement() as empty:
        chosen = plain_hosts.choose(empty, on, plain_hosts.server(1, devices=1, policy=policy), 2)
    assert [(own.cells, own.devices) for own, *_ in chosen] == [
        (((1, 4),), ("cn_0000:01:00.0",)),
        (((1, 4),), ("cn_0000:00:00.0",)),
    ]


def summaries(used: int) -> dict[str, Any]:
    vcpus = {"capacity": 3, "used": used}
    node = {"root_provider_uuid": "cn", "resources": {"VCPU": vcpus}}
    return {"n0": {**node, "traits": ["CUSTOM_NUMA_CELL_0"]}}


NEAR, FAR, FULL = (
    with_places(
        {
            "allocations": {node: {"resources": {"VCPU": vcpus}}},
            "mappings": {"_PROC1": [node], "card": [device]},
        },
        summaries(0),
    )
    for node, vcpus, device in (("n0", 1, "near"), ("n0", 1, "far"), ("n0", 2, "far"))
)


class Request(SimpleNamespace):
    """Nova's request spec, as far as it is needed."""

    def __contains__(self, name: str) -> bool:
        return name in vars(self)


class Filters:
    """Nova's function, whose filters keep only the candidates with a given device."""

    def __init__(self) -> None:
        self.device = "near"
        self.sort = partial(candidate_order._order, self.filter)

    def filter(self, _self: Any, _spec: Any, hosts: Any, _index: int) -> list[Any]:
        hosts = list(hosts)
        for host in hosts:
            host.allocation_candidates = [
                each
                for each in host.allocation_candidates
                if each["mappings"]["card"] == [self.device]
            ]
        return [host for host in hosts if host.allocation_candidates]


def state() -> SimpleNamespace:
    return SimpleNamespace(allocation_candidates=[NEAR, FAR, FULL], pci_stats=None)


def place_a_server(host: SimpleNamespace, used: int) -> None:
    """Have a host what a server of the request leaves."""
    host_of(host).left = summaries(used)


WITH_DEVICES = Request(pci_requests=SimpleNamespace(requests=["card"]))


def test_a_host_that_a_server_was_placed_on_gets_the_candidates_with_room_back() -> None:
    filters, host = Filters(), state()
    assert filters.sort(None, WITH_DEVICES, [host], 0) == [host]
    assert host.allocation_candidates == [NEAR]
    place_a_server(host, 2)  # room for 1 VCPU
    filters.device = "far"
    assert filters.sort(None, WITH_DEVICES, [host], 1) == [host]
    assert host.allocation_candidates == [FAR]


def test_a_second_host_keeps_the_candidates() -> None:
    filters, host = Filters(), state()
    for index in range(3):
        assert filters.sort(None, WITH_DEVICES, [host], index) == [host]
        assert host.allocation_candidates == [NEAR]
    place_a_server(host, 0)
    filters.device = "far"
    assert filters.sort(None, WITH_DEVICES, [host], 3) == [host]
    assert FAR in host.allocation_candidates
    assert FULL in host.allocation_candidates


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(Request(), id="no field"),
        pytest.param(Request(pci_requests=None), id="none"),
        pytest.param(Request(pci_requests=SimpleNamespace(requests=[])), id="empty"),
    ],
)
def test_nothing_is_stored_for_a_server_without_devices(spec: Any) -> None:
    filters, host = Filters(), state()
    filters.sort(None, spec, [host], 0)
    assert host.allocation_candidates == [NEAR]
    assert host_of(host).refused == []
