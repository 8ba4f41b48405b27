"""The arguments for guests and services, and the inventories of a host as a whole."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import pytest

from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.host_arguments import (
    add_occupancy_arguments,
    host_inventories,
    read_occupancy,
)
from cpu_tiers.tools.tiers.occupancy import Occupancy

Read = Callable[..., Occupancy]

CELLS = "".join(
    f"<cell id='{cell}'><memory unit='KiB'>1048576</memory><cpus num='2'>"
    + "".join(f"<cpu id='{cpu}'/>" for cpu in (2 * cell, 2 * cell + 1))
    + "</cpus></cell>"
    for cell in (0, 1)
)
CAPABILITIES = (
    "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology>"
    f"<cells num='2'>{CELLS}</cells></topology></host></capabilities>"
)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    (tmp_path / "host.xml").write_text(CAPABILITIES)
    (tmp_path / "nova.conf").write_text("")

    def read(*arguments: str) -> Occupancy:
        parser = ArgumentParser()
        add_occupancy_arguments(parser)
        parsed = parser.parse_args(["--capabilities", str(tmp_path / "host.xml"), *arguments])
        return read_occupancy(parsed, read_config([str(tmp_path / "nova.conf")]))

    return read


def test_threads_of_services_run_on_all_cpus(read: Read) -> None:
    host = read("--beside", "system.slice=100x8", "--beside", "user.slice=50x1")
    assert {name: service.weight for name, service in host.services.items()} == {
        "system.slice": 100,
        "user.slice": 50,
    }
    assert host.services["system.slice"].threads == {CpuSet(range(4)): 8}


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        pytest.param(("--beside", "system.slice"), ["--beside"], id="no weight"),
        pytest.param(("--beside", "a/b=1x1"), ["--beside"], id="a path"),
        pytest.param(("--beside", "a=1x1", "--beside", "a=2x2"), ["--beside"], id="a name twice"),
        pytest.param(("--beside", "machine.slice=1x1"), ["--beside"], id="the guests' own slice"),
        pytest.param(("--default-weight", "0"), ["--default-weight"], id="weight 0"),
        pytest.param(
            ("--default-weight", "999999999999"), ["--default-weight"], id="no default of a kernel"
        ),
        pytest.param(
            ("--default-weight", "-1", "--beside", "x"),
            ["--default-weight", "--beside"],
            id="every fault is named",
        ),
    ],
)
def test_faults(read: Read, arguments: tuple[str, ...], where: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read(*arguments)
    assert [fault.where for fault in error.value.faults] == where


def host(*sizes: int) -> Host:
    cells = tuple(
        NumaCell(id=cell, cpus=CpuSet(range(100 * cell, 100 * cell + size)), memory_kb=2**20)
        for cell, size in enumerate(sizes)
    )
    return Host(name="c1", topology=HostTopology(arch="x86_64", cells=cells))


@pytest.mark.parametrize("is_numa_aware", [True, False, None])
def test_a_host_is_counted_as_a_whole(is_numa_aware: bool | None) -> None:
    options = InventoryOptions(
        enable_numa_reporting_to_placement=is_numa_aware, vcpu_share_multiplier=50
    )
    inventories = host_inventories(host(2, 3), options)
    # 2 + 3 CPUs; 5 x 50 shares, also on a host that does not report them
    assert {name: inventory.total for name, inventory in inventories.items()} == {
        VCPU: 5,
        VCPU_SHARES: 250,
    }


def test_a_host_without_shared_cpus_has_no_inventories() -> None:
    assert host_inventories(host(2), InventoryOptions(cpu_dedicated_set=CpuSet([0, 1]))) == {}
