"""What no host could take: classes, sizes, traits, and all of them together."""

import pytest

from cpu_tiers.accounting.empty_hosts import EmptyCloud, never_served
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.request import CandidateQuery, RequestGroup


def provider(
    name: str, *traits: str, parent: str | None = None, **totals: int
) -> ResourceProvider:
    """Make a provider whose requests may take all of it, in steps of 1."""
    inventories = {key: Inventory(total=total, max_unit=total) for key, total in totals.items()}
    return ResourceProvider(
        name=name, parent=parent, inventories=inventories, traits=frozenset(traits)
    )


def host(*providers: ResourceProvider) -> ProviderTree:
    return ProviderTree(providers=providers, managed_classes=frozenset())


SMALL = host(provider("small", "CUSTOM_SSD", VCPU=8, MEMORY_MB=4096))
LARGE = host(
    provider("large", MEMORY_MB=65536),
    provider("large_NUMA0", parent="large", VCPU=32),
    provider("large_NUMA1", "CUSTOM_FAST", parent="large", VCPU=48, VGPU=1),
)
POOL = provider("pool", DISK_GB=1000)
CLOUD = EmptyCloud(hosts=(SMALL, LARGE), shared=(POOL,))


def text(*groups: RequestGroup, cloud: EmptyCloud = CLOUD) -> list[str]:
    return list(map(str, never_served("flavor f", [CandidateQuery(groups)], cloud)))


def unsuffixed(*traits: str, **amounts: int) -> RequestGroup:
    return RequestGroup(resources=amounts, required=frozenset(traits))


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([unsuffixed(VCPU=8, MEMORY_MB=4096, DISK_GB=1000)], id="all of a host"),
        pytest.param([unsuffixed(VCPU=48, VGPU=1)], id="a node of a host"),
        pytest.param(
            [RequestGroup("1", {"VCPU": 32}), RequestGroup("2", {"VCPU": 48})],
            id="both nodes of a host",
        ),
        pytest.param([unsuffixed("CUSTOM_SSD", VCPU=1)], id="a trait"),
    ],
)
def test_an_empty_host_could_take_it(groups: list[RequestGroup]) -> None:
    assert text(*groups) == []


@pytest.mark.parametrize(
    ("groups", "faults"),
    [
        pytest.param(
            [unsuffixed(VCPU=49)],
            ["VCPU: requests 49; no host has a provider with more than 48 (host large)"],
            id="49 vCPUs of nodes of 32 and 48",
        ),
        pytest.param(
            [RequestGroup("1", {"VCPU": 41}), RequestGroup("2", {"VCPU": 41})],
            ["VCPU: requests 82; no host has more than 80 (host large)"],
            id="two nodes of 41 vCPUs: 82 of 32 + 48",
        ),
        pytest.param(
            [unsuffixed(VCPU=1, PCPU=2, DISK_GB=1001)],
            [
                "PCPU: requests 2; no host has any of it",
                "DISK_GB: requests 1001; no host has more than 1000 (host small)",
            ],
            id="a class that no host has, and a disk larger than the pool",
        ),
        pytest.param(
            [unsuffixed("CUSTOM_SLOW", VCPU=1)],
            ["CUSTOM_SLOW: required; no host has this trait"],
            id="a trait",
        ),
        pytest.param(
            [unsuffixed("CUSTOM_SSD", VCPU=9)],
            ["no host has all that the flavor requests; host large lacks least: CUSTOM_SSD"],
            id="more vCPUs than the host with the trait has",
        ),
        pytest.param(
            [RequestGroup("1", {"VGPU": 1, "MEMORY_MB": 1})],
            [
                "no host has all that the flavor requests; host large lacks least: a provider"
                " with 1 VGPU and 1 MEMORY_MB"
            ],
            id="two classes of one provider",
        ),
    ],
)
def test_no_host_could_take_it(groups: list[RequestGroup], faults: list[str]) -> None:
    place = "flavor f" if faults[0].startswith("no host") else "flavor f, "
    joint = ": " if place == "flavor f" else ""
    assert text(*groups) == [f"{place}{joint}{fault}" for fault in faults]


def test_units_ratio_and_reserved() -> None:
    inventory = Inventory(
        total=10, reserved=2, min_unit=2, max_unit=9, step_size=2, allocation_ratio=1.5
    )
    only = ResourceProvider(name="h", inventories={"VCPU": inventory})
    cloud = EmptyCloud(hosts=(host(only),))
    fits = [n for n in range(1, 20) if not text(unsuffixed(VCPU=n), cloud=cloud)]
    assert fits == [2, 4, 6, 8]  # up to max_unit 9, in steps of 2, below (10 - 2) x 1.5 = 12


def test_either_query_is_enough() -> None:
    nodes, plain = CandidateQuery((unsuffixed(PCPU=1),)), CandidateQuery((unsuffixed(VCPU=8),))
    assert never_served("f", [nodes, plain], CLOUD) == []
    assert len(never_served("f", [nodes, nodes], CLOUD)) == 1
