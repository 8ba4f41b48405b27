"""A survey of hosts on a real Placement."""

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import MULTIPLIER_TRAIT, VCPU_SHARES
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.inventories import HostSurvey, survey


def provider(
    client: PlacementClient, name: str, *classes: str, trait: str = "", parent: str | None = None
) -> str:
    client.ensure_names(classes, [trait] if trait else [])
    uuid = client.create_provider(name, parent_uuid=parent).uuid
    by_class = {name: Inventory(total=4, max_unit=4) for name in classes}
    written = client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    names = frozenset({trait} if trait else ())
    client.set_traits(uuid, Traits(generation=written.generation, names=names))
    return uuid


def test_no_hosts(embedded: PlacementClient) -> None:
    assert survey(embedded) == ()


def test_the_providers_of_a_host_tell_the_kind_of_the_host(embedded: PlacementClient) -> None:
    provider(embedded, "undecided", "VCPU")
    provider(embedded, "declined", "VCPU", VCPU_SHARES, trait=NO_NUMA_TRAIT)
    aware = provider(embedded, "aware", "DISK_GB")
    provider(embedded, "aware_NUMA0", "VCPU", VCPU_SHARES, trait=NODE_TRAIT, parent=aware)
    provider(embedded, "pinned", "PCPU", trait=MULTIPLIER_TRAIT)
    provider(embedded, "storage pool", "DISK_GB")  # no CPUs: not a host
    agent = provider(embedded, "agent only")
    provider(embedded, "agent only:br-ex", "VCPU", parent=agent)  # a child, but not a NUMA node

    def report(name: str, aware: bool | None, vcpu: bool, shares: bool) -> HostSurvey:
        return HostSurvey(
            name=name,
            is_numa_aware=aware,
            has_pcpu=name == "pinned",
            has_vcpu=vcpu,
            has_shares=shares,
            functions=frozenset({MULTIPLIER_TRAIT} if name == "pinned" else ()),
        )

    assert survey(embedded) == (
        report("aware", aware=True, vcpu=True, shares=True),
        report("declined", aware=False, vcpu=True, shares=True),
        report("pinned", aware=None, vcpu=False, shares=False),
        report("undecided", aware=None, vcpu=True, shares=False),
    )
