"""Why hosts have no candidate, asked of a real Placement."""

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.explanation import Explanation, explain
from cpu_tiers.tools.placement.room import read_room
from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason
from cpu_tiers.tools.reasons.reasons import ANCHOR
from cpu_tiers.tools.room.server_queries import Request, server_queries
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.numa import cheaper
from tests.functional.placement.providing import provide, put_into_aggregate

SIZES = {"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 100}


def queries(
    specs: dict[str, str] | None = None,
    *,
    shares: bool = False,
    numa: bool = False,
    aggregates: frozenset[frozenset[str]] = frozenset(),
) -> Request:
    flavor = Flavor(name="f", vcpus=4, memory_mb=4096, root_gb=10, extra_specs=specs or {})
    request = ServerRequest(flavor=flavor, query_vcpu_shares=shares, query_numa=numa)
    return server_queries(request, member_of=aggregates)


def names(explanation: Explanation) -> set[str]:
    return {explanation.names[host] for host in explanation.candidates}


def test_a_single_missing_trait_among_forty_hosts(embedded: PlacementClient) -> None:
    for number in range(40):
        traits = ["COMPUTE_NODE", *(["HW_CPU_X86_AVX2"] if number == 7 else [])]
        provide(embedded, f"host-{number:02}", traits, **{**SIZES, "VCPU": 3 if number < 9 else 8})
    explanation = explain(embedded, queries({"trait:HW_CPU_X86_AVX2": "required"}))
    assert (len(explanation.names), explanation.candidates) == (40, frozenset())
    # Host 7 lacks 4 - 3 VCPU. 31 hosts only lack the trait. 8 hosts lack both.
    assert {name: n for name, n in explanation.without.items() if n} == {
        "VCPU": 1,
        "HW_CPU_X86_AVX2": 31,
    }
    assert explanation.without.keys() == {
        *SIZES,
        "HW_CPU_X86_AVX2",
        "!COMPUTE_STATUS_DISABLED",
    }
    nearest = explanation.nearest()
    assert len(nearest) == 32
    assert nearest[0] == ("host-07", HostReason({"VCPU": 1}))
    assert nearest[1] == ("host-09", HostReason({"HW_CPU_X86_AVX2": 1}))
    sizes = sorted(len(reason.lacks) for reason in explanation.reasons.values())
    assert sizes == [*[1] * 32, *[2] * 8]


def test_a_class_that_placement_does_not_know(embedded: PlacementClient) -> None:
    provide(embedded, "host", ["COMPUTE_NODE"], **SIZES)
    explanation = explain(embedded, queries({"quota:cpu_shares_multiplier": "100"}, shares=True))
    assert explanation.without["CUSTOM_VCPU_SHARES"] == 1
    assert explanation.nearest() == [("host", HostReason({"CUSTOM_VCPU_SHARES": 400}))]
    assert embedded.absent_names(["CUSTOM_VCPU_SHARES"], []) != (frozenset(), frozenset())


def test_limits_and_aggregates_that_only_placement_knows(embedded: PlacementClient) -> None:
    inside = provide(embedded, "inside", ["COMPUTE_NODE"], max_unit=4095, **SIZES)
    provide(embedded, "outside", ["COMPUTE_NODE"], **SIZES)
    aggregate = put_into_aggregate(embedded, inside)
    explanation = explain(embedded, queries(aggregates=frozenset({frozenset({aggregate})})))
    member_of = f"member_of=in:{aggregate}"
    assert {name: n for name, n in explanation.without.items() if n} == {
        "MEMORY_MB": 1,
        member_of: 1,
    }
    assert dict(explanation.nearest()) == {
        "inside": HostReason({"MEMORY_MB": ClaimLimit("MEMORY_MB", "max_unit", 4095, 4096)}),
        "outside": HostReason({member_of: 1}),
    }


def test_a_disabled_host_and_a_full_host(embedded: PlacementClient) -> None:
    provide(embedded, "disabled", ["COMPUTE_NODE", "COMPUTE_STATUS_DISABLED"], **SIZES)
    provide(embedded, "full", ["COMPUTE_NODE"])
    provide(embedded, "good", ["COMPUTE_NODE"], **SIZES)
    provide(embedded, "network", IPV4_ADDRESS=9)
    explanation = explain(embedded, queries())
    assert names(explanation) == {"good"}
    assert set(explanation.names.values()) == {"disabled", "full", "good"}
    lacks = {explanation.names[host]: r.lacks for host, r in explanation.reasons.items()}
    assert lacks == {
        "disabled": {"!COMPUTE_STATUS_DISABLED": 1},
        "full": {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 10},
    }


def test_dedicated_cpus_on_a_host_without_pcpu(embedded: PlacementClient) -> None:
    provide(embedded, "old", [], **SIZES)  # without COMPUTE_NODE, as after `inventory sync`
    assert names(explain(embedded, queries({"hw:cpu_policy": "dedicated"}))) == {"old"}


REQUESTS = (
    "GET /resource_classes",
    "GET /traits",
    r"GET /allocation_candidates\?resources=CUSTOM",
    r"GET /allocation_candidates\?resources=MEMORY_MB:1$",
    r"GET /resource_providers\?required",
    r"GET /resource_providers\?resources",
    r"GET /resource_providers\??$",
    r"GET /resource_providers/[-0-9a-f]{36}/inventories",
    r"GET /resource_providers/[-0-9a-f]{36}/usages",
    r"GET /resource_providers/[-0-9a-f]{36}/traits",
)


def test_a_refusal_or_a_failure_of_any_request_is_a_single_error(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    client.ensure_names(classes=["CUSTOM_VCPU_SHARES"])
    provide(client, "host", ["COMPUTE_NODE"], **SIZES)
    provide(client, "full", ["COMPUTE_NODE"])
    asked = queries({"quota:cpu_shares_multiplier": "100"}, shares=True)
    for request_line in REQUESTS:
        for fault, message in {"JSON 403": "policy", "JSON 503": "database"}.items():
            faults[:] = [(request_line, fault)] * 4
            with pytest.raises(PlacementError, match=message):
                explain(client, asked)


def test_numa_nodes_where_placement_knows_no_trait_of_pages(embedded: PlacementClient) -> None:
    provide(embedded, "host", ["COMPUTE_NODE"], **{**SIZES, "VCPU": 2})
    explanation = explain(embedded, queries({"hw:numa_nodes": "2"}, numa=True))
    # The fast form of the query without VCPU names traits that the query does not name.
    assert explanation.without["VCPU"] == 1
    ((host, reason),) = explanation.nearest()
    assert (host, reason.lacks) == ("host", {"VCPU": 2})


@pytest.mark.parametrize("numa", [False, True])
def test_a_cloud_without_hosts(embedded: PlacementClient, numa: bool) -> None:
    explanation = explain(embedded, queries({"hw:numa_nodes": "2"}, numa=numa))
    assert (explanation.names, explanation.candidates) == ({}, frozenset())
    assert explanation.nearest() == []


@pytest.mark.parametrize("specs", [{}, {"hw:numa_nodes": "2"}], ids=["no nodes", "two nodes"])
def test_a_tree_of_a_release_before_the_anchor(
    embedded: PlacementClient, specs: dict[str, str]
) -> None:
    """Placement has a candidate for a server without NUMA nodes; nova-scheduler leaves it out."""
    root = provide(embedded, "old", ["COMPUTE_NODE"], DISK_GB=100)
    for number in range(2):
        node = embedded.create_provider(f"old_NUMA{number}", parent_uuid=root).uuid
        amounts = {"VCPU": 8, "MEMORY_MB": 8192}
        by_class = {name: Inventory(total=n, max_unit=n) for name, n in amounts.items()}
        made = embedded.set_inventories(node, Inventories(generation=0, by_class=by_class))
        is_node = frozenset({"HW_NUMA_ROOT"})
        embedded.set_traits(node, Traits(generation=made.generation, names=is_node))
    asked = queries(specs, numa=True)
    survey = CandidateSurvey.of_servers(embedded, [asked])
    (sent, *_) = [q for q in asked.queries if "_PROC1" not in {g.suffix for g in q.groups}]
    assert embedded.candidates(cheaper(sent)._replace(root_forbidden=frozenset())).by_host()
    assert not survey.of_server(asked).by_host()
    explanation = explain(embedded, asked)
    assert not explanation.candidates
    assert explanation.reasons == {root: HostReason({ANCHOR: 1})}
    assert set(explanation.without.values()) == {0}
    (room,) = read_room(embedded, [asked])
    assert (room.more, {h.limited_by for h in room.hosts.values()}) == (0, {ANCHOR})


def test_a_dedicated_server_lacks_dedicated_cpus(embedded: PlacementClient) -> None:
    """Nova's second query has VCPU in place of PCPU; neither has a candidate."""
    root = provide(embedded, "host", ["COMPUTE_NODE"], **{**SIZES, "VCPU": 3}, PCPU=2)
    asked = queries({"hw:cpu_policy": "dedicated"})  # 4 PCPU, or else 4 VCPU
    explanation = explain(embedded, asked)
    assert explanation.reasons == {root: HostReason({"PCPU": 2})}
    (room,) = read_room(embedded, [asked])
    assert {host.limited_by for host in room.hosts.values()} == {"PCPU"}
