"""Guests of a libvirtd with systemd and cgroup v2: in the machine of :file:`build-image`."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libvirt
import pytest
from lxml.builder import E

from cpu_tiers.tools.libvirt.domain import BUILT_IN, write_domain
from tests.libvirt.cgroup import version
from tests.libvirt.contest import build_firmware, start
from tests.libvirt.servers import server

_IS_THE_MACHINE = Path("/run/systemd/system").exists() and version() == 2
pytestmark = pytest.mark.skipif(not _IS_THE_MACHINE, reason="no host with systemd and cgroup v2")

OWN_THREADS = "emulator_overhead_percent = 30"
"""The main thread of a QEMU that emulates a guest used 13 to 28 % of the time of the vCPU."""

MULTIPLIERS = {"gold": "100", "bronze": "25", "untiered": None}


@pytest.fixture(scope="module", autouse=True)
def machines_outweigh_services() -> None:
    """Let the guests outweigh the services: an emulated machine is slow, and the audit is busy."""
    command = ["systemctl", "set-property", "--runtime", "machine.slice", "CPUWeight=10000"]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def guests() -> Iterator[dict[str, libvirt.virDomain]]:
    """Three guests that spin on CPU 0."""
    with tempfile.TemporaryDirectory(dir="/var/lib/libvirt/images") as name:
        folder, running = Path(name), dict[str, libvirt.virDomain]()
        folder.chmod(0o755)  # QEMU does not run as root
        loader = E.loader(str(build_firmware(folder, [0])), type="rom")
        connection = libvirt.open("qemu:///system")
        for tier, multiplier in MULTIPLIERS.items():
            specs = {} if multiplier is None else {"quota:cpu_shares_multiplier": multiplier}
            firmware = {"firmware": lambda _: [E.os(loader)]}
            xml = write_domain(server(tier, extra_specs=specs), {**BUILT_IN, **firmware})
            xml = xml.replace('<domain type="kvm">', '<domain type="qemu">')
            running[tier] = connection.createXML(xml, libvirt.VIR_DOMAIN_START_PAUSED)
        for domain in running.values():
            start(domain, [0])
        yield running
        for domain in running.values():
            domain.destroy()


def weight_file(guest: libvirt.virDomain) -> Path:
    r"""Return the file with the weight, such as ``machine-qemu\x2d1\x2dgold.scope/cpu.weight``."""
    scope = rf"machine-qemu\x2d{guest.ID()}\x2d{guest.name()}.scope"
    return Path("/sys/fs/cgroup/machine.slice") / scope / "cpu.weight"


def audit(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit status of the audit, and its findings about weights."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write(f"[compute]\ncpu_shared_set = 0\n[libvirt]\n{OWN_THREADS}\n")
        conf.flush()
        command = ["cpu-tiers", "host", "audit", "--config-file", conf.name, "-f", "json"]
        ran = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
    assert ran.returncode in (0, 3), ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_the_kernel_has_the_weights_of_the_xml(guests: dict[str, libvirt.virDomain]) -> None:
    weights = {name: int(weight_file(guest).read_text()) for name, guest in guests.items()}
    assert weights == {"gold": 100, "bronze": 25, "untiered": 100}


def test_the_audit_knows_the_layout_of_systemd(guests: dict[str, libvirt.virDomain]) -> None:
    """Every guest is measured, and gets its floor."""
    assert guests
    assert audit("--ignore", "untiered", "--interval", "10") == (0, [])


def test_the_untiered_guest_is_found(guests: dict[str, libvirt.virDomain]) -> None:
    status, (finding,) = audit("--interval", "0")
    assert status == 3
    assert (finding["kind"], finding["uuid"]) == ("untiered", guests["untiered"].UUIDString())


def test_the_audit_mends_a_weight(guests: dict[str, libvirt.virDomain]) -> None:
    weight_file(guests["gold"]).write_text("7")
    arguments = ("--ignore", "untiered", "--interval", "0")
    status, (finding,) = audit(*arguments)
    assert status == 3
    assert (finding["kind"], finding["fixed"]) == ("weight", False)
    assert finding["uuid"] == guests["gold"].UUIDString()
    status, (finding,) = audit(*arguments, "--fix")
    assert (status, finding["kind"], finding["fixed"]) == (0, "weight", True)
    assert int(weight_file(guests["gold"]).read_text()) == 100
    assert audit(*arguments) == (0, [])
