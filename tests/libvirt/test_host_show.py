"""``cpu-tiers host show`` of running QEMU guests."""

import json
from collections.abc import Iterator

import libvirt
import pytest

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.app import main
from cpu_tiers.tools.libvirt.domain import write_domain

MULTIPLIERS = {"show-gold": "100", "show-bronze": "25", "show-untiered": None}


@pytest.fixture
def guests(hypervisor: libvirt.virConnect, kvm: bool) -> Iterator[dict[str, libvirt.virDomain]]:
    """A Gold, a Bronze and an untiered guest of one vCPU, all on CPU 0."""
    running = {}
    for name, multiplier in MULTIPLIERS.items():
        specs = {} if multiplier is None else {"quota:cpu_shares_multiplier": multiplier}
        flavor = Flavor(name=name, vcpus=1, memory_mb=64, extra_specs=specs)
        host = ComputeHost(cells=(), cpu_shared_set=CpuSet({0}))
        guest = Guest(name=name, flavor=flavor, arch="x86_64", host=host)
        xml = write_domain(guest)
        if not kvm:
            xml = xml.replace('<domain type="kvm">', '<domain type="qemu">')
        running[name] = hypervisor.createXML(xml)
    yield running
    for domain in running.values():
        domain.destroy()


def test_guests_of_a_running_libvirt(
    hypervisor: libvirt.virConnect,
    guests: dict[str, libvirt.virDomain],
    capsys: pytest.CaptureFixture[str],
) -> None:
    default = guests["show-untiered"].schedulerParameters()["cpu_shares"]
    assert default in (100, 1024)  # cgroup v2, v1
    # The floor counts shares, of which the default weight of the host's cgroup version is 1024.
    arguments = ["--connect", hypervisor.getURI(), "--default-weight", f"{default}", "-f", "json"]
    assert main(["host", "show", *arguments]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    shown = {name: rows[name] for name in MULTIPLIERS}
    assert {name: row["shares"] for name, row in shown.items()} == {
        "show-gold": 100,
        "show-bronze": 25,
        "show-untiered": default,
    }
    assert [row["tier"] for row in shown.values()] == ["gold", "bronze", None]
    assert {row["uuid"] for row in shown.values()} == {d.UUIDString() for d in guests.values()}
    total = 100 + 25 + default  # of one CPU
    for figure in ("floor_cpus", "entitlement_cpus"):
        assert {name: row[figure] for name, row in shown.items()} == pytest.approx(
            {"show-gold": 100 / total, "show-bronze": 25 / total, "show-untiered": default / total}
        )
