"""Small guests on CPU 0, and a ``host watch`` of them."""

from collections.abc import Collection, Iterator

import libvirt

from cpu_tiers.conf.read import read_config
from cpu_tiers.inventory import Host
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.tools.host.watched_host import WatchedHost
from cpu_tiers.tools.libvirt.connection import RunningDomain
from cpu_tiers.tools.tiers.tier import Tier


def watch(connection: libvirt.virConnect) -> WatchedHost:
    """Return a watch with the tier gold, of weight 400."""

    def describe(uuids: Collection[str]) -> Iterator[RunningDomain]:
        for domain in connection.listAllDomains():
            if domain.UUIDString() in uuids:
                xml = domain.XMLDesc().encode()
                yield RunningDomain(name=domain.name(), xml=xml, shares=None)

    cells = (NumaCell(id=0, cpus=CpuSet({0, 1}), memory_kb=2**20),)
    host = Host(name="h", topology=HostTopology(arch="x86_64", cells=cells))
    gold = Tier.parse("gold", "400", 1, where="gold")
    conf = read_config(["/dev/null"])
    # Without CPU sets, a vCPU that is pinned to one CPU is a dedicated vCPU.
    conf.set_override("cpu_shared_set", "0-1", "compute")
    return WatchedHost(host, conf, describe, [gold])


def guest(name: str, shares: int) -> Guest:
    """Return a guest of one vCPU."""
    flavor = Flavor(
        name=name, vcpus=1, memory_mb=32, extra_specs={"quota:cpu_shares": str(shares)}
    )
    host = ComputeHost(cells=(), cpu_shared_set=CpuSet({0}))
    return Guest(name=f"watch-{name}", flavor=flavor, arch="x86_64", host=host)
