"""Nova's own fitting, held to the places that were allocated."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import inspect
import itertools
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from nova import objects
from nova.pci.stats import PciDeviceStats
from nova.virt import hardware
from oslo_utils.fixture import uuidsentinel as uuids

from cpu_tiers.model.guest import CellPlace
from cpu_tiers.nova.numa import numa_fit
from cpu_tiers.nova.numa.candidate_cells import NodeMappings
from tests.draws import drawn
from tests.nova.topologies import host_cell, instance_topology, nova_places

ORIGINAL = inspect.unwrap(hardware.numa_fit_instance_to_host)
CONSTRAINED = partial(numa_fit._constrain, ORIGINAL)


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def fitted(host: Any, guest: Any, *ways: Sequence[CellPlace], **others: Any) -> Any:
    """Return what Nova's function says where only ``ways`` were allocated."""
    with numa_fit.allocated(lambda asked: ways):
        return CONSTRAINED(host, guest, None, **others)


def ids(guest: Any) -> list[int]:
    return [cell.id for cell in guest.cells]


def draw(seed: int) -> tuple[random.Random, Any, Any]:
    rng = random.Random(seed)
    threads = rng.choice([1, 2, 2, 4])
    legacy = rng.random() < 0.2
    cells = [host_cell(rng, n, threads, legacy=legacy) for n in range(rng.randint(1, 4))]
    return rng, objects.NUMATopology(cells=cells), instance_topology(rng)


@drawn(1500)
@given(st.integers(min_value=0))
def test_a_guest_that_nova_places_on_cells_is_placed_by_cpu_tiers_too(seed: int) -> None:
    rng, host, guest = draw(seed)
    if len(guest) > len(host):
        return
    chosen = rng.sample(host.cells, len(guest))
    theirs = nova_places(objects.NUMATopology(cells=chosen), guest, None)
    ways = [[CellPlace(cell.id) for cell in way] for way in itertools.permutations(chosen)]
    ours = fitted(host, guest, *ways)
    event("neither" if ours is None else "both" if theirs else "we alone")
    assert theirs is None or ours is not None


@drawn(1500)
@given(st.integers(min_value=0))
def test_a_guest_is_where_and_on_the_pages_that_were_allocated(seed: int) -> None:
    rng, host, guest = draw(seed)
    if len(guest) > len(host):
        return
    chosen = rng.sample(host.cells, len(guest))
    sizes = [rng.choice([None, *(one.size_kb for one in cell.mempages)]) for cell in chosen]
    places = [CellPlace(cell.id, size) for cell, size in zip(chosen, sizes, strict=True)]
    before = [one.obj_to_primitive() for one in (host, guest)]
    found = fitted(host, guest, places)
    assert [one.obj_to_primitive() for one in (host, guest)] == before
    event("fits" if found else "does not")
    if not found:
        return
    assert ids(found) == [cell.id for cell in chosen]
    assert found.emulator_threads_isolated == guest.emulator_threads_isolated
    for number, (cell, asked) in enumerate(zip(found.cells, guest.cells, strict=True)):
        if sizes[number] is not None:
            allotted = min(one.size_kb for one in chosen[number].mempages)
            assert (cell.pagesize or allotted) == sizes[number]
        assert (cell.cpuset, cell.pcpuset, cell.memory) == (
            asked.cpuset,
            asked.pcpuset,
            asked.memory,
        )
        reserved = cell.cpuset_reserved or set()
        pins = [*(cell.cpu_pinning or {}).values(), *reserved]
        assert set(pins) <= chosen[number].free_pcpus
        assert len(pins) == len(set(pins)) == len(asked.pcpuset) + len(reserved)
        assert len(reserved) == (guest.emulator_threads_isolated and number == 0)


def cell(number: int, **others: Any) -> Any:
    """Return a host cell of 4 dedicated CPUs, 8 MiB in small pages and 8 in large ones."""
    first = 4 * number
    values = {
        "cpuset": set(),
        "pcpuset": set(range(first, first + 4)),
        "pinned_cpus": set(),
        "siblings": [{cpu} for cpu in range(first, first + 4)],
        "memory": 16,
        "socket": number,
        "cpu_usage": 0,
        "memory_usage": 0,
        "mempages": [
            objects.NUMAPagesTopology(size_kb=4, total=2048, used=0, reserved=0),
            objects.NUMAPagesTopology(size_kb=2048, total=4, used=0, reserved=0),
        ],
    }
    return objects.NUMACell(id=number, **{**values, **others})


def guest(*dedicated: int, size: int | None = None, emulator: str | None = None) -> Any:
    """Return a pinned guest: for each cell so many CPUs, and 4 MiB."""
    ends = list(itertools.accumulate(dedicated))
    return objects.InstanceNUMATopology(
        cells=[
            objects.InstanceNUMACell(
                id=number,
                cpuset=set(),
                pcpuset=set(range(end - count, end)),
                memory=4,
                pagesize=size,
                cpu_policy="dedicated",
                cpu_thread_policy=None,
                cpuset_reserved=None,
                cpu_pinning_raw=None,
            )
            for number, (end, count) in enumerate(zip(ends, dedicated, strict=True))
        ],
        emulator_threads_policy=emulator,
    )


def test_a_candidate_does_not_change_the_guest_for_the_next() -> None:
    """Each host cell has two CPUs, and the guest cells need one and three."""
    cells = [cell(0, pcpuset={0, 1}), cell(1, pcpuset={4, 5})]
    uneven = guest(1, 3)
    for _ in range(3):
        assert CONSTRAINED(objects.NUMATopology(cells=cells), uneven, None) is None
    assert ids(uneven) == [0, 1]


@pytest.fixture
def host() -> Any:
    return objects.NUMATopology(cells=[cell(0), cell(1), cell(2)])


def test_two_guest_cells_do_not_share_a_host_cell(host: Any) -> None:
    assert fitted(host, guest(1, 1), [CellPlace(1), CellPlace(1)]) is None


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([CellPlace(0)], id="fewer than cells"),
        pytest.param([CellPlace(0), CellPlace(3)], id="a cell that the host does not have"),
    ],
)
def test_places_that_are_none(host: Any, places: list[CellPlace]) -> None:
    assert fitted(host, guest(1, 1), places) is None


def test_nothing_is_known_of_places() -> None:
    busy = objects.NUMATopology(cells=[cell(0, pinned_cpus={0}), cell(1)])
    with numa_fit.allocated(lambda asked: None):
        assert ids(CONSTRAINED(busy, guest(1), None)) == [1]  # Nova's choice: most free CPUs
    assert ids(CONSTRAINED(busy, guest(1), None)) == [1]
    assert ids(fitted(busy, guest(1), [CellPlace(0)])) == [0]


def test_a_guest_without_nodes_needs_no_allocated_cells(host: Any) -> None:
    def find(asked: Any) -> Any:
        raise AssertionError

    with numa_fit.allocated(find):
        assert CONSTRAINED(host, None, None) is None
        assert CONSTRAINED(None, guest(1), None) is None


def test_the_first_way_that_fits() -> None:
    host = objects.NUMATopology(cells=[cell(0), cell(1, pinned_cpus={6, 7}), cell(2)])
    zero, one, two = (CellPlace(number) for number in range(3))
    found = fitted(host, guest(1, 3), [zero, one], [one, zero], [one, two])
    assert ids(found) == [1, 0]


def test_isolated_emulator_threads_are_on_the_first_guest_cell() -> None:
    host = objects.NUMATopology(cells=[cell(0), cell(1, pinned_cpus={7})])
    zero, one = CellPlace(0), CellPlace(1)
    asked = guest(3, 3, emulator="isolate")
    assert fitted(host, asked, [one, zero]) is None  # 4 CPUs where 3 are free
    found = fitted(host, asked, [zero, one])
    assert found.emulator_threads_isolated
    pins = [set(cell.cpu_pinning.values()) for cell in found.cells]
    assert pins[0] | found.cells[0].cpuset_reserved == {0, 1, 2, 3}
    assert (pins[1], found.cells[1].cpuset_reserved) == ({4, 5, 6}, None)


ANY, LARGE, SMALL = hardware.MEMPAGES_ANY, hardware.MEMPAGES_LARGE, hardware.MEMPAGES_SMALL


@pytest.mark.parametrize(
    ("asked", "allocated", "pinned"),
    [
        pytest.param(ANY, 4, 4, id="any: Nova's choice would be the largest"),
        pytest.param(ANY, 2048, 2048, id="any: the largest"),
        pytest.param(LARGE, 2048, 2048, id="large"),
        pytest.param(SMALL, 4, 4, id="small"),
        pytest.param(2048, 2048, 2048, id="a size"),
        pytest.param(2048, 4, 4, id="a size that was chosen on the host before"),
        pytest.param(None, 4, None, id="none: the smallest, and Nova does not write it down"),
        pytest.param(ANY, None, 2048, id="not known what was allocated"),
    ],
)
def test_page_sizes(
    host: Any, asked: int | None, allocated: int | None, pinned: int | None
) -> None:
    found = fitted(host, guest(1, size=asked), [CellPlace(1, allocated)])
    assert [(one.id, one.pagesize) for one in found.cells] == [(1, pinned)]


@pytest.mark.parametrize(
    ("asked", "allocated"),
    [
        pytest.param(ANY, 1048576, id="the host lacks the page size"),
        pytest.param(None, 2048, id="a guest that asks for none gets the smallest"),
        pytest.param(LARGE, 4, id="large, for which nova-scheduler has not asked"),
        pytest.param(SMALL, 2048, id="small, for which nova-scheduler has not asked"),
    ],
)
def test_page_sizes_that_do_not_fit(host: Any, asked: int | None, allocated: int) -> None:
    assert fitted(host, guest(1, size=asked), [CellPlace(1, allocated)]) is None


def test_a_host_that_names_no_page_sizes() -> None:
    plain = objects.NUMATopology(cells=[cell(0, mempages=[])])
    assert ids(fitted(plain, guest(1), [CellPlace(0, 4)])) == [0]
    single = cell(
        0, mempages=[objects.NUMAPagesTopology(size_kb=4, total=4096, used=0, reserved=0)]
    )
    host = objects.NUMATopology(cells=[single])
    assert fitted(host, guest(1, size=LARGE), [CellPlace(0, 4)]) is None


def test_a_device_has_to_be_near() -> None:
    host = objects.NUMATopology(cells=[cell(0), cell(1)])
    stats = PciDeviceStats(host)
    stats.pools = [
        {"vendor_id": "1", "product_id": "2", "dev_type": "type-PCI", "numa_node": 1, "count": 1}
    ]
    request = objects.InstancePCIRequest(
        count=1,
        request_id="r",
        alias_name="a",
        spec=[{"vendor_id": "1", "product_id": "2"}],
        numa_policy="required",
    )
    others = {"pci_requests": [request], "pci_stats": stats}
    assert fitted(host, guest(1), [CellPlace(0)], **others) is None
    assert ids(fitted(host, guest(1), [CellPlace(1)], **others)) == [1]
    assert ids(fitted(host, guest(1, 1), [CellPlace(0), CellPlace(1)], **others)) == [0, 1]


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"physnets": {"fast"}, "tunneled": False}, id="a physical network"),
        pytest.param({"physnets": set(), "tunneled": True}, id="a tunnel"),
    ],
)
def test_a_network_has_to_be_near(wanted: dict[str, Any]) -> None:
    near = objects.NetworkMetadata(physnets={"fast"}, tunneled=True)
    far = objects.NetworkMetadata(physnets=set(), tunneled=False)
    host = objects.NUMATopology(
        cells=[cell(0, network_metadata=far), cell(1, network_metadata=near)]
    )
    limits = objects.NUMATopologyLimits(
        cpu_allocation_ratio=1.0,
        ram_allocation_ratio=1.0,
        network_metadata=objects.NetworkMetadata(**wanted),
    )
    assert fitted(host, guest(1), [CellPlace(0)], limits=limits) is None
    assert ids(fitted(host, guest(1), [CellPlace(1)], limits=limits)) == [1]
    assert ids(fitted(host, guest(1, 1), [CellPlace(0), CellPlace(1)], limits=limits)) == [0, 1]


def with_card(requester: str | None, count: int = 1, **spec: str) -> Any:
    return objects.InstancePCIRequest(
        count=count,
        spec=[spec],
        alias_name="card",
        request_id=uuids.request,
        requester_id=requester,
        numa_policy="preferred",
    )


def stats_of(*pools: Any) -> PciDeviceStats:
    stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    stats.pools = [{**pool, "devices": []} for pool in pools]
    return stats


def test_a_port_takes_a_device_of_the_mapped_interface(host: Any) -> None:
    stats = stats_of(
        {"physical_network": "p", "parent_ifname": "ens0", "numa_node": 0, "count": 1},
        {"physical_network": "p", "parent_ifname": "ens1", "numa_node": 0, "count": 0},
    )
    mappings = NodeMappings({"port": ["a"]}, [CellPlace(0)], {})
    asked = {"pci_requests": [with_card("port", physical_network="p")], "pci_stats": stats}
    for interface, fits in (("ens0", True), ("ens1", False)):
        mappings.interfaces = {"port": interface}
        assert bool(CONSTRAINED(host, guest(1), mappings, **asked)) is fits
    assert [pool["count"] for pool in stats.pools] == [1, 0]  # nothing is taken by a look


NEAR, ALSO_NEAR, FAR = "near", "also near", "far"


@pytest.mark.parametrize(
    ("providers", "fits"),
    [
        pytest.param((NEAR, FAR), False, id="a near and a far card"),
        pytest.param((FAR, ALSO_NEAR), False, id="a far and a near card"),
        pytest.param((NEAR, NEAR), True, id="one device"),
        pytest.param((NEAR, ALSO_NEAR), True, id="two devices"),
    ],
)
def test_a_candidate_gives_all_devices_of_an_alias(
    host: Any, providers: tuple[str, str], fits: bool
) -> None:
    """Nova 34 takes one card, of the near device, for a candidate with a near and a far one."""
    stats = stats_of(
        *(
            {"product_id": "card", "numa_node": node, "rp_uuid": uuid, "count": count}
            for uuid, node, count in ((NEAR, 1, 2), (FAR, 2, 1), (ALSO_NEAR, 1, 2))
        )
    )
    groups = {f"{uuids.request}-{number}": [uuid] for number, uuid in enumerate(providers)}
    mappings = NodeMappings(groups, [CellPlace(1)], {})
    asked = {"pci_requests": [with_card(None, 2, product_id="card")], "pci_stats": stats}
    assert bool(CONSTRAINED(host, guest(1), mappings, **asked)) is fits
