from collections.abc import Iterable

import pytest

from cpu_tiers.errors import ExtensionError, InvalidInput
from cpu_tiers.inventory import BUILT_IN, AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES

FOUR = AllocationRatio(value=4.0)


def host(cpus: int = 64, memory_mb: int = 2048, disk_gb: int | None = 100) -> Host:
    cell = NumaCell(id=0, cpus=CpuSet(range(cpus)), memory_kb=memory_mb * 1024)
    topology = HostTopology(arch="x86_64", cells=(cell,))
    return Host(name="h", topology=topology, disk_gb=disk_gb)


def inventories(it: Host, options: InventoryOptions) -> dict[str, Inventory]:
    (root,) = build_tree(it, options).providers
    assert (root.name, root.parent, root.traits) == ("h", None, frozenset())
    return dict(root.inventories)


def test_the_specs_64_cores_times_100() -> None:
    options = InventoryOptions(
        report_vcpu_shares=True, cpu_allocation_ratio=FOUR, reserved_host_memory_mb=0
    )
    assert inventories(host(64), options) == {
        "VCPU": Inventory(total=64, max_unit=64, allocation_ratio=4.0),
        VCPU_SHARES: Inventory(total=6400, max_unit=6400, allocation_ratio=4.0),
        "MEMORY_MB": Inventory(total=2048, max_unit=2048, ratio_is_initial=True),
        "DISK_GB": Inventory(total=100, max_unit=100, ratio_is_initial=True),
    }


def test_the_specs_configuration_example() -> None:
    # report_vcpu_shares = true, vcpu_share_multiplier = 100, cpu_shared_set = 1-112
    shared = CpuSet.parse("1-112", where="spec")
    options = InventoryOptions(report_vcpu_shares=True, cpu_shared_set=shared)
    shares = inventories(host(128), options)[VCPU_SHARES]
    assert (shares.total, shares.max_unit, shares.step_size) == (11200, 10000, 1)


def test_off_by_default() -> None:
    assert VCPU_SHARES not in inventories(host(), InventoryOptions())


def test_novas_defaults() -> None:
    found = inventories(host(), InventoryOptions())
    assert (found["VCPU"].allocation_ratio, found["VCPU"].ratio_is_initial) == (4.0, True)
    assert found["MEMORY_MB"].reserved == 512


def test_reserved() -> None:
    options = InventoryOptions(
        report_vcpu_shares=True,
        vcpu_share_multiplier=50,
        reserved_host_cpus=2,
        reserved_host_memory_mb=1024,
        reserved_host_disk_mb=1025,
    )
    found = inventories(host(8), options)
    reserved = {name: inventory.reserved for name, inventory in found.items()}
    # 50 x 2 = 100 shares; 1025 MiB round up to 2 GiB
    assert reserved == {"VCPU": 2, VCPU_SHARES: 100, "MEMORY_MB": 1024, "DISK_GB": 2}
    assert found[VCPU_SHARES].total == 400


@pytest.mark.parametrize(
    ("percent", "reserved"),
    [
        pytest.param(0, 100, id="off: the shares of reserved_host_cpus"),
        pytest.param(12, 133, id="300 x 12/112 is 32.14, rounded up"),
        pytest.param(25, 160, id="300 x 25/125"),
        pytest.param(1000, 373, id="300 x 1000/1100 is 272.7: some are left"),
    ],
)
def test_reserved_for_the_own_threads_of_qemu(percent: int, reserved: int) -> None:
    options = InventoryOptions(
        report_vcpu_shares=True,
        vcpu_share_multiplier=50,
        reserved_host_cpus=2,
        emulator_overhead_percent=percent,
    )
    found = inventories(host(8), options)
    assert (found[VCPU_SHARES].total, found[VCPU_SHARES].reserved) == (400, reserved)
    assert found["VCPU"].reserved == 2


def test_the_reserve_is_at_most_the_total() -> None:
    options = InventoryOptions(
        report_vcpu_shares=True, vcpu_share_multiplier=1, emulator_overhead_percent=1
    )
    # 1 x 1/101, rounded up: a host of one share has none to claim.
    assert inventories(host(1), options)[VCPU_SHARES].reserved == 1


@pytest.mark.parametrize(
    ("shared", "dedicated", "totals"),
    [
        pytest.param(None, None, {"VCPU": 8, VCPU_SHARES: 800}, id="no set: all are shared"),
        pytest.param("0-2", None, {"VCPU": 3, VCPU_SHARES: 300}, id="a shared set alone"),
        pytest.param(None, "2-7", {"PCPU": 6}, id="a dedicated set alone: none is shared"),
        pytest.param("0,1", "2-7", {"VCPU": 2, VCPU_SHARES: 200, "PCPU": 6}, id="both sets"),
    ],
)
def test_cpu_sets(shared: str | None, dedicated: str | None, totals: dict[str, int]) -> None:
    options = InventoryOptions(
        report_vcpu_shares=True,
        cpu_shared_set=CpuSet.parse(shared, where="") if shared else None,
        cpu_dedicated_set=CpuSet.parse(dedicated, where="") if dedicated else None,
    )
    found = inventories(host(8, disk_gb=None), options)
    assert {n: i.total for n, i in found.items() if n != "MEMORY_MB"} == totals
    if "PCPU" in totals:
        assert found["PCPU"] == Inventory(total=6, max_unit=6)


def test_reserved_amounts_beyond_the_total_are_refused() -> None:
    options = InventoryOptions(reserved_host_cpus=9, reserved_host_memory_mb=4096)
    with pytest.raises(InvalidInput) as caught:
        inventories(host(8), options)
    given = [fault.given for fault in caught.value.faults]
    assert given == ["reserved 9 of total 8", "reserved 4096 of total 2048"]


def test_the_managed_classes_of_a_tree() -> None:
    ours = {"VCPU", "PCPU", "MEMORY_MB", VCPU_SHARES, "CUSTOM_NUMA_SERVER"}
    assert build_tree(host(disk_gb=None), InventoryOptions()).managed_classes == ours
    without_disk = build_tree(host(disk_gb=0), InventoryOptions())
    assert without_disk.managed_classes == ours | {"DISK_GB"}
    assert "DISK_GB" not in without_disk.root.inventories


def gpu(it: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """A reporter as another distribution may bring it."""
    one = Inventory(total=1, max_unit=1)
    card = f"{it.name}_gpu"
    yield ResourceProvider(name=f"{card}_part", parent=card, inventories={"VGPU": one})
    yield ResourceProvider(name=card, parent=it.name, traits=frozenset({"CUSTOM_GPU"}))
    yield ResourceProvider(name=it.name, traits=frozenset({"CUSTOM_HAS_GPU"}))


def test_another_reporter_adds_children_and_traits() -> None:
    tree = build_tree(host(), InventoryOptions(), {**BUILT_IN, "gpu": gpu})
    assert [(p.name, p.parent) for p in tree.providers] == [
        ("h", None),
        ("h_gpu", "h"),
        ("h_gpu_part", "h_gpu"),
    ]
    assert tree.root.traits == {"CUSTOM_HAS_GPU"}
    assert tree.names()[1] == {"CUSTOM_HAS_GPU", "CUSTOM_GPU"}
    assert "VGPU" in tree.managed_classes


def test_two_reporters_of_a_single_class() -> None:
    with pytest.raises(ExtensionError, match="'gpu' and 'gpu2' both report VGPU of h_gpu_part"):
        build_tree(host(), InventoryOptions(), {"gpu": gpu, "gpu2": gpu})


@pytest.mark.parametrize(
    ("providers", "message"),
    [
        ([ResourceProvider(name="c", parent="nowhere")], "c under nowhere"),
        ([ResourceProvider(name="c", parent="c")], "c under c"),
        (
            [ResourceProvider(name="c", parent="h"), ResourceProvider(name="c", parent="d")],
            "under h and under d",
        ),
    ],
)
def test_trees_that_cannot_be(providers: list[ResourceProvider], message: str) -> None:
    with pytest.raises(ExtensionError, match=message):
        build_tree(host(), InventoryOptions(), {"odd": lambda *_: providers})
