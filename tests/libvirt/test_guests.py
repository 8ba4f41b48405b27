"""QEMU guests started from the XML of cpu-tiers, and their weights in the kernel."""

from collections.abc import Callable, Iterator

import libvirt
import pytest

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.libvirt.domain import write_domain
from tests.libvirt.cgroup import least_weight, version, weight_file

Start = Callable[[Flavor], libvirt.virDomain]


@pytest.fixture
def start(hypervisor: libvirt.virConnect, kvm: bool) -> Iterator[Start]:
    """Start a guest of a flavor; it is gone after the test."""
    guests = []

    def start(flavor: Flavor) -> libvirt.virDomain:
        host = ComputeHost(cells=(), cpu_shared_set=CpuSet({0}))
        guest = Guest(name=flavor.name, flavor=flavor, arch="x86_64", host=host)
        xml = write_domain(guest)
        if not kvm:
            xml = xml.replace('<domain type="kvm">', '<domain type="qemu">')
        guests.append(hypervisor.createXML(xml, libvirt.VIR_DOMAIN_START_VALIDATE))
        return guests[-1]

    yield start
    for guest in guests:
        guest.destroy()


def flavor(name: str, vcpus: int, **extra_specs: str) -> Flavor:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Flavor(name=name, vcpus=vcpus, memory_mb=64, extra_specs=specs)


@pytest.mark.parametrize(
    ("name", "vcpus", "multiplier", "weight"),
    [
        ("gold", 1, "100.0", 100),
        ("silver", 1, "50.0", 50),
        ("bronze", 1, "25.0", 25),
        ("fraction", 10, "2.5", 25),
        ("largest", 2, "5000", 10000),
        ("least", 1, "1", 2),  # libvirt may refuse 1: decision D70
        ("rounded", 5, "0.1", 2),  # 0.5 is rounded up to 1
    ],
)
def test_libvirt_and_the_kernel_have_the_weight(
    start: Start, name: str, vcpus: int, multiplier: str, weight: int
) -> None:
    guest = start(flavor(name, vcpus, quota__cpu_shares_multiplier=multiplier))
    assert guest.schedulerParameters()["cpu_shares"] == weight
    assert int(weight_file(guest).read_text()) == weight


def test_libvirt_takes_the_whole_range(start: Start) -> None:
    guest = start(flavor("range", 1, quota__cpu_shares_multiplier="1"))
    for weight in (*range(2, 10_000, 101), 10_000):
        guest.setSchedulerParameters({"cpu_shares": weight})
        assert int(weight_file(guest).read_text()) == weight


def test_libvirt_refuses_a_weight_below_the_least_weight(
    hypervisor: libvirt.virConnect, start: Start
) -> None:
    """The reason of decision D70: the least weight is 2 on cgroup v1, and with libvirt 9.0."""
    least = least_weight(hypervisor, version())
    guest = start(flavor("refused", 1))
    guest.setSchedulerParameters({"cpu_shares": least})
    with pytest.raises(libvirt.libvirtError, match="must be in range"):
        guest.setSchedulerParameters({"cpu_shares": least - 1})
    assert int(weight_file(guest).read_text()) == least


def test_vcpus_float_over_the_shared_cpus(start: Start) -> None:
    guest = start(flavor("floating", 2))
    first_only = (True, *[False] * (len(guest.vcpus()[1][0]) - 1))
    assert guest.vcpus()[1] == [first_only, first_only]
