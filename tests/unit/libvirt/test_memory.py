import pytest
from lxml import etree

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.memory import elements
from tests.unit.libvirt.guests import LARGE_PAGES, MIXED, REALTIME, guest


@pytest.mark.parametrize(
    ("guest", "expected"),
    [
        pytest.param(
            LARGE_PAGES,
            "<memoryBacking><hugepages>"
            '<page size="2048" unit="KiB" nodeset="0"/>'
            '<page size="1048576" unit="KiB" nodeset="1"/>'
            "</hugepages></memoryBacking>",
            id="large pages by node; node 2 has the host's smallest, which need no backing",
        ),
        pytest.param(
            REALTIME,
            "<memoryBacking><nosharepages/><locked/></memoryBacking>",
            id="memory of real-time vCPUs is locked and not merged",
        ),
        pytest.param(MIXED, "", id="small pages need no backing"),
        pytest.param(guest(), "", id="without a topology"),
    ],
)
def test_memory_backing(guest: Guest, expected: str) -> None:
    text = "".join(etree.tostring(element, encoding="unicode") for element in elements(guest))
    assert text == expected
