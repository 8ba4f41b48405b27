"""The capabilities of this machine, from a libvirtd."""

import json
import subprocess
import sys
from pathlib import Path

import libvirt
import pytest

from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.tools.libvirt.connection import LibvirtUnavailable, read_capabilities


def test_the_capabilities_of_the_local_machine(daemon_uri: str) -> None:
    topology = parse_capabilities(read_capabilities(daemon_uri), where=daemon_uri)
    online = Path("/sys/devices/system/cpu/online").read_text().strip()
    assert str(topology.cpus) == online


def test_libvirts_own_example_host() -> None:
    # libvirt's test driver: 2 cells of 8 CPUs, 2 GiB and 4 GiB
    topology = parse_capabilities(read_capabilities("test:///default"), where="test")
    assert [str(cell.cpus) for cell in topology.cells] == ["0-7", "8-15"]
    assert topology.memory_mb == 6144


def test_the_command_line_asks_libvirt(daemon_uri: str, tmp_path: Path) -> None:
    capabilities = tmp_path / "capabilities.xml"
    capabilities.write_bytes(read_capabilities(daemon_uri))
    sources = (["--connect", daemon_uri], ["--capabilities", str(capabilities)])
    asked, read = (
        json.loads(
            subprocess.run(
                [
                    Path(sys.executable).with_name("cpu-tiers"),
                    *("inventory", "show", "--hostname", "h", "--disk-gb", "1", "-f", "json"),
                    *source,
                ],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )[0]["inventories"]
        for source in sources
    )
    for inventories in (asked, read):  # a virtual machine may be given memory at any time
        assert inventories.pop("MEMORY_MB")["total"] > 0
    assert asked == read
    with libvirt.openReadOnly(daemon_uri) as connection:
        assert asked["VCPU"]["total"] == connection.getInfo()[2]


def test_a_missing_libvirt(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    uri = f"qemu+unix:///system?socket={tmp_path}/absent"
    with pytest.raises(LibvirtUnavailable, match="absent"):
        read_capabilities(uri)
    assert capfd.readouterr() == ("", "")
