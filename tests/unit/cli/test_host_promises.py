"""What a host promises by nova.conf, and by Placement."""

from fractions import Fraction

from cpu_tiers.conf.read import read_config
from cpu_tiers.inventory import Host
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.tools.host.host_promises import HostPromises
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.sold import Sale

GOLD = Domain(name="gold", shares=100, vcpu_sets=(None,))


def test_placement_goes_before_nova_conf() -> None:
    cells = (NumaCell(id=0, cpus=CpuSet({0}), memory_kb=2**20),)
    host = Host(name="h", topology=HostTopology(arch="x86_64", cells=cells))
    promises = HostPromises(host, read_config(["/dev/null"]))
    # 100 shares for the CPU, and a ratio of 4
    assert promises.made_to([GOLD], 100, None)["gold"][1].sold == Fraction(1, 4)
    by_placement = Sale(cpus=1, shares=Fraction(600))
    assert (promises.is_other(None), promises.is_other(by_placement)) == (False, True)
    entitlement, dues = promises.made_to([GOLD], 100, by_placement)["gold"]
    assert [entitlement.floor, dues.sold] == [1, Fraction(1, 6)]
    assert not promises.is_other(by_placement)
