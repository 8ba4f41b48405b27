"""The state of hosts as a real Placement has it: pools, aggregates, limits and full hosts."""

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_empty_cloud
from cpu_tiers.tools.placement.host_reader import read_hosts
from tests.functional.placement.providing import provide, put_into_aggregate

VCPU = CandidateQuery(groups=(RequestGroup(resources={"VCPU": 1}),))
CONSUMER = "00000000-0000-4000-8000-000000000001"


def test_only_the_requested_host_with_the_pool_of_the_host_is_read(
    client: PlacementClient, seen: list[str]
) -> None:
    one, two = (provide(client, name, ["COMPUTE_NODE"], max_unit=4, VCPU=8) for name in "ab")
    pool = provide(client, "pool", ["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=75)
    put_into_aggregate(client, one, pool)
    allocations = Portion.by_id({one: {"VCPU": 3}})
    client.set_consumers(
        Consumer(uuid=CONSUMER, allocations=allocations, project_id="p", user_id="u")
    )
    survey = CandidateSurvey(client, [VCPU])
    survey.answer([VCPU])
    seen.clear()
    cloud = read_hosts(client, [one], survey.summaries, {"VCPU": (), "DISK_GB": ()})
    assert not any(two in line for line in seen)  # only hosts that are asked for are read
    # The summary of host a tells its use and its traits; the pool has no summary.
    assert sum(f"{one}/" in line for line in seen) == 1
    of_one, of_pool = cloud.hosts
    assert [p.state.name for p in of_one.providers] == ["a", "pool"]
    assert [p.state.name for p in of_pool.providers] == ["pool"]
    (vcpu, disk) = of_one.stocks
    assert (vcpu.free, vcpu.inventory.max_unit, disk.free) == (5, 4, 75)
    assert of_one.providers[0].state.traits == {"COMPUTE_NODE"}


def test_hosts_with_room_for_all_amounts_are_not_read(
    client: PlacementClient, seen: list[str]
) -> None:
    """Only the inventories of who lacks an amount, or refuses it, tell more than the summaries."""
    names = ("with-room", "small", "limited", "limited-to-one-group")
    limits = (8, 8, 1, 4)
    hosts = {
        name: provide(client, name, max_unit=most, VCPU=3 if name == "small" else 8, MEMORY_MB=64)
        for name, most in zip(names, limits, strict=True)
    }
    groups = (RequestGroup(resources={"VCPU": 4}), RequestGroup("_A", resources={"VCPU": 2}))
    survey = CandidateSurvey(client, [CandidateQuery(groups=groups)])
    survey.answer([VCPU])
    seen.clear()
    amounts = {"VCPU": {2, 4, 6}}
    cloud = read_hosts(client, list(hosts.values()), survey.summaries, amounts)
    read = {name for name, uuid in hosts.items() if any(f"{uuid}/" in line for line in seen)}
    assert read == {"small", "limited", "limited-to-one-group"}
    asked = [line for line in seen if "?resources=" in line]
    assert asked == [f"GET /resource_providers?resources=VCPU:{n}" for n in (2, 4, 6)]
    stocks = {r.providers[0].state.name: r.providers[0].stocks["VCPU"] for r in cloud.hosts}
    assert (stocks["with-room"].free, stocks["small"].free) == (8, 3)
    assert stocks["limited"].inventory.max_unit == 1


def test_no_provider_has_room_of_a_class_that_placement_does_not_know(
    client: PlacementClient,
) -> None:
    provide(client, "a", VCPU=8)
    assert client.providers_with_room("CUSTOM_NOT_THERE", 1) == ()
    assert [each.name for each in client.providers_with_room("VCPU", 8)] == ["a"]


def test_aggregates_of_the_query(client: PlacementClient) -> None:
    one = provide(client, "a", VCPU=8)
    aggregate = put_into_aggregate(client, one)
    (host,) = read_hosts(client, [one], {}, {"VCPU": ()}, [aggregate]).hosts
    assert host.providers[0].state.aggregates == {aggregate}


def test_a_provider_that_is_deleted_meanwhile_has_nothing(client: PlacementClient) -> None:
    one = provide(client, "a", VCPU=8)

    def delete(*_: object) -> None:
        client.delete_provider(one)

    (host,) = read_hosts(client, [one], {}, {"VCPU": ()}, progress=delete).hosts
    assert (host.root, host.stocks) == (one, ())


def test_a_cloud_is_read_without_the_allocations(client: PlacementClient) -> None:
    one = provide(client, "a", ["COMPUTE_NODE", "HW_CPU_X86_AVX2"], VCPU=8)
    allocations = Portion.by_id({one: {"VCPU": 3}})
    client.set_consumers(
        Consumer(uuid=CONSUMER, allocations=allocations, project_id="p", user_id="u")
    )
    (host,) = read_empty_cloud(client, ["HW_CPU_X86_AVX2"]).hosts
    assert (host.stocks[0].free, host.providers[0].state.traits) == (
        8,
        frozenset({"COMPUTE_NODE", "HW_CPU_X86_AVX2"}),
    )
