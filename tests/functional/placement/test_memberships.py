"""Which providers have a trait, or are in an aggregate, with few requests."""

import pytest

from cpu_tiers.tools.placement import memberships
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud
from tests.functional.placement.providing import (
    content,
    one_by_one,
    provide,
    put_into_aggregate,
)


def test_only_roots_and_pools_are_asked_for_aggregates(
    client: PlacementClient, seen: list[str]
) -> None:
    """The aggregates of a child are known from the aggregates of the roots."""
    hosts = [provide(client, f"host-{n}", VCPU=8) for n in range(3)]
    child = client.create_provider("host-2-child", parent_uuid=hosts[2]).uuid
    aggregate = put_into_aggregate(client, hosts[1], child)
    seen.clear()
    snapshot = read_whole_cloud(client)
    asked = [line for line in seen if line.endswith("/aggregates")]
    assert asked == [f"GET /resource_providers/{uuid}/aggregates" for uuid in hosts]
    assert f"GET /resource_providers?member_of={aggregate}" in seen
    members = {p.uuid for p in snapshot.providers if aggregate in p.aggregates}
    assert members == {hosts[1], child}


def test_common_traits_are_read_by_who_lacks_them(
    client: PlacementClient, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memberships, "_MANY", 4)
    common = [f"CUSTOM_COMMON_{n:02}" for n in range(12)]
    client.ensure_names(traits=common)
    for number in range(4):
        has = common[1:] if number == 3 else common[:-1]
        provide(client, f"host-{number}", ["COMPUTE_NODE", *has], VCPU=1)
    provide(client, "pool", ["MISC_SHARES_VIA_AGGREGATE", common[5]], DISK_GB=1)
    seen.clear()
    snapshot = read_whole_cloud(client)
    assert content(snapshot) == one_by_one(client)
    lists = {line.partition("?required=")[2] for line in seen if "?required=" in line}
    # Three of four hosts have the first trait, and one host has the last.
    assert {"COMPUTE_NODE,!CUSTOM_COMMON_00", "CUSTOM_COMMON_00,!COMPUTE_NODE"} <= lists
    assert {"CUSTOM_COMMON_11", "MISC_SHARES_VIA_AGGREGATE"} <= lists
    assert "CUSTOM_COMMON_00" not in lists
