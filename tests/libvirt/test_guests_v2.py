"""A QEMU guest from the XML of cpu-tiers on a host with cgroup v2, and its weight there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import libvirt
import pytest

from cpu_tiers.tools.cgroup.hierarchy import find_hierarchy
from cpu_tiers.tools.libvirt.domain import write_domain
from tests.libvirt.cgroup import least_weight
from tests.libvirt.host_v2 import HostV2, host_v2
from tests.libvirt.servers import server

Weights = Callable[[], tuple[int, int | None]]


@pytest.fixture(scope="module")
def host(hypervisor: libvirt.virConnect) -> Iterator[HostV2]:
    """Boot the host once: the boot takes most of the time."""
    with TemporaryDirectory() as folder, host_v2(hypervisor, Path(folder)) as host:
        yield host


@pytest.fixture(scope="module")
def xml() -> str:
    """The domain of a flavor with a weight of 1."""
    guest = server("least", extra_specs={"quota:cpu_shares_multiplier": "1"})
    return write_domain(guest).replace('<domain type="kvm">', '<domain type="qemu">')


@pytest.fixture(scope="module")
def guest(host: HostV2, xml: str) -> libvirt.virDomain:
    """The guest of this domain, paused. The guest ends with the host."""
    return host.hypervisor.createXML(xml, libvirt.VIR_DOMAIN_START_PAUSED)


@pytest.fixture(scope="module")
def weights(host: HostV2, guest: libvirt.virDomain) -> Weights:
    """Read the weight from libvirt, and from the kernel as ``cpu-tiers host audit`` does."""
    hierarchy = find_hierarchy(host.files)
    process = host.files.read(f"/run/libvirt/qemu/{guest.name()}.pid").strip()
    path = hierarchy.guest_of(host.files.read(f"/proc/{process}/cgroup"))
    assert hierarchy.version == 2
    assert path == f"/machine/qemu-{guest.ID()}-{guest.name()}.libvirt-qemu"
    return lambda: (guest.schedulerParameters()["cpu_shares"], hierarchy.weight(host.files, path))


def test_a_flavor_with_a_weight_of_1_has_2(weights: Weights) -> None:
    """Decision D70."""
    assert weights() == (2, 2)


def test_libvirt_takes_the_whole_range(guest: libvirt.virDomain, weights: Weights) -> None:
    for weight in (*range(2, 10_000, 499), 10_000):
        guest.setSchedulerParameters({"cpu_shares": weight})
        assert weights() == (weight, weight)


def test_more_than_10000_is_refused(guest: libvirt.virDomain, weights: Weights) -> None:
    """By the kernel before libvirt 9.1, and by libvirt since."""
    guest.setSchedulerParameters({"cpu_shares": 10_000})
    with pytest.raises(libvirt.libvirtError, match=r"out of range|in range \[1, 10000\]"):
        guest.setSchedulerParameters({"cpu_shares": 10_001})
    assert weights() == (10_000, 10_000)


def test_libvirt_refuses_a_weight_below_the_least_weight(
    host: HostV2, guest: libvirt.virDomain, weights: Weights, xml: str
) -> None:
    """The reason of decision D70: for libvirt 9.0 the least weight is 2 on cgroup v2, too."""
    least = least_weight(host.hypervisor, version=2)
    guest.setSchedulerParameters({"cpu_shares": least})
    with pytest.raises(libvirt.libvirtError, match="must be in range"):
        guest.setSchedulerParameters({"cpu_shares": least - 1})
    assert weights() == (least, least)
    lighter = xml.replace("<shares>2<", f"<shares>{least - 1}<").replace("least", "lighter")
    with pytest.raises(libvirt.libvirtError, match="must be in range"):
        host.hypervisor.createXML(lighter, libvirt.VIR_DOMAIN_START_PAUSED)
