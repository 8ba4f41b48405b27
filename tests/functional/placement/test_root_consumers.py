"""The consumers of a root: which consumers are read, and how often."""

from cpu_tiers.accounting.holdings import ConsumerId, ProviderId
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.numa_reshape import moving_classes, moving_consumers
from tests.driver_operations import delete

ONE, TWO, DISK = (ConsumerId(f"{n}a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11") for n in range(3))


def test_the_classes_that_stay_with_the_root_do_not_move() -> None:
    inventories = {name: Inventory(total=8, max_unit=8) for name in ("MEMORY_MB", "DISK_GB")}
    root = ResourceProvider(name="cn", inventories=inventories)
    tree = ProviderTree(providers=(root,), managed_classes=OF_NODES)
    assert "VCPU" in moving_classes(tree)
    assert not moving_classes(tree) & {"MEMORY_MB", "DISK_GB"}


def test_a_known_consumer_is_read_again_only_if_the_allocations_changed(
    client: PlacementClient, seen: list[str]
) -> None:
    root = ProviderId(client.create_provider("cn").uuid)
    by_class = {"VCPU": Inventory(total=8, max_unit=8), "DISK_GB": Inventory(total=9, max_unit=9)}
    client.set_inventories(root, Inventories(generation=0, by_class=by_class))

    def hold(consumer: str, **amounts: int) -> None:
        delete(client, consumer)
        request = AllocationRequest(allocations={root: amounts})
        claim(client, consumer, request, project_id="p", user_id="u")

    hold(ONE, VCPU=1)
    hold(TWO, VCPU=2, DISK_GB=1)
    hold(DISK, DISK_GB=2)
    first = moving_consumers(client, root, {"VCPU"}, {})
    assert first.keys() == {ONE, TWO}
    hold(TWO, VCPU=2, DISK_GB=3)
    seen.clear()
    second = moving_consumers(client, root, {"VCPU"}, first)
    listing = f"GET /resource_providers/{root}/allocations"
    assert seen == [listing, f"GET /allocations/{TWO}"]
    assert second[ONE] is first[ONE]
    assert second[TWO].allocations.of(root) == {"VCPU": 2, "DISK_GB": 3}
    delete(client, ONE)
    assert moving_consumers(client, root, {"VCPU"}, second).keys() == {TWO}
