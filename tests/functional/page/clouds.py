"""Clouds for the tests of pages."""

from collections.abc import Sequence

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.page.cloud_data import AuditedHost, AuditFinding, GuestFigures
from cpu_tiers.tools.sold.sold import SoldCloud, sold_cloud
from cpu_tiers.tools.tiers.tier import Tier

HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7*7 }}"
GOLD = Tier.parse("gold", "100", 1, where="gold")


def cloud_of(names: Sequence[str]) -> SoldCloud:
    """Return a cloud of hosts with 4 VCPU and 100 MEMORY_MB each.

    The first host has a server without a tier (2 VCPU, 30 MEMORY_MB), and the second a gold server
    of 5 VCPU, which is more than the host has.
    """
    providers = [
        CloudProvider(
            uuid=f"provider-{number}",
            name=name,
            inventories={
                "VCPU": Inventory(total=4, max_unit=4),
                VCPU_SHARES: Inventory(total=800, max_unit=800),
                "MEMORY_MB": Inventory(total=100, max_unit=100),
            },
        )
        for number, name in enumerate(names, start=1)
    ]
    held = [{"VCPU": 2, "MEMORY_MB": 30}, {"VCPU": 5, VCPU_SHARES: 500}]
    consumers = {
        f"server-{number}": {f"provider-{number}": amounts}
        for number, amounts in enumerate(held[: len(names)], start=1)
    }
    snapshot = Snapshot(providers=tuple(providers), consumers=consumers)
    return sold_cloud(snapshot, [GOLD])


def report_of(host: str) -> AuditedHost:
    """Return what an audit says of a host and its guest."""
    finding = AuditFinding(kind="weight", where="guest web", found="<b>found</b>", do="fix it")
    guest = GuestFigures(uuid="server-1", name="web", tier="", floor=1.5, due=1.0, ran=0.75)
    return AuditedHost(host=host, findings=(finding,), guests=(guest,))
