"""The hosts that Nova may choose for a server: by zone, groups, hints, metadata of aggregates."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.bindings import Bindings, FilterOptions
from cpu_tiers.tools.plan.hosts import Server
from cpu_tiers.tools.plan.planner import Question, make_plan
from cpu_tiers.tools.plan.read import read_cloud
from cpu_tiers.tools.plan.relief import relief_of
from cpu_tiers.tools.plan.spec_match import matches
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT, Request, server_queries
from cpu_tiers.translators import ServerRequest
from tests.unit.cloud_model.clouds import provider

HOSTS = frozenset({"h0", "h1", "h2", "h3"})
AT = {"a": "h0", "b": "h0", "c": "h1"}
FLAVOR = Flavor(name="f", vcpus=2, memory_mb=4)


def allowed(
    server: SnapshotServer,
    *,
    aggregates: Mapping[str, SnapshotAggregate] | None = None,
    groups: Mapping[str, ServerGroup] | None = None,
    options: FilterOptions = FilterOptions(),  # noqa: B008  # a value that nobody edits
) -> set[str]:
    """Return the hosts to which the server a of h0 may go."""
    servers = SnapshotServers(
        servers={"a": server}, aggregates=aggregates or {}, groups=groups or {}
    )
    hosts = set(HOSTS)
    for binding, _ in Bindings(servers, AT, HOSTS, options).steps("a", server):
        assert binding.why
        hosts &= binding.hosts
    return hosts - {"h0"}


def aggregate(*hosts: str, zone: str = "", **metadata: str) -> SnapshotAggregate:
    return SnapshotAggregate(name="x", zone=zone, hosts=hosts, metadata=metadata)


def server(**changes: Any) -> SnapshotServer:
    return SnapshotServer(name="a", **{"flavor": FLAVOR, **changes})


def with_filters(*names: str, **more: Any) -> FilterOptions:
    return FilterOptions(enabled=frozenset(names), **more)


ZONES = {"1": aggregate("h0", "h1", zone="az"), "2": aggregate("h2", zone="other")}


@pytest.mark.parametrize(
    ("zone", "hosts"),
    [("az", {"h1"}), ("other", {"h2"}), ("", {"h1", "h2", "h3"}), ("nova", {"h1", "h2", "h3"})],
    ids=["pinned", "another", "none", "the default zone has no aggregate"],
)
def test_zones(zone: str, hosts: set[str]) -> None:
    assert allowed(server(zone=zone), aggregates=ZONES) == hosts


@pytest.mark.parametrize(
    ("policy", "members", "hosts"),
    [
        pytest.param("affinity", "a", set(), id="the only member"),
        pytest.param("affinity", "ab", set(), id="all on one host"),
        pytest.param("affinity", "abc", set(), id="most are here: the others come"),
        pytest.param("soft-affinity", "ab", {"h1", "h2", "h3"}, id="soft"),
        pytest.param("anti-affinity", "ac", {"h1", "h2", "h3"}, id="counted elsewhere"),
    ],
)
def test_groups(policy: str, members: str, hosts: set[str]) -> None:
    group = ServerGroup(name="g", policy=policy, members=tuple(members))
    assert allowed(server(), groups={"g": group}) == hosts


def test_a_group_without_its_filter() -> None:
    """Nova refuses to move a member: setup_instance_group."""
    for policy in ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"):
        group = ServerGroup(name="g", policy=policy, members=("a",))
        assert (
            allowed(server(), groups={"g": group}, options=with_filters("ComputeFilter")) == set()
        )


def test_hints() -> None:
    hinted = server(hints={"same_host": ("c",), "different_host": ("b",)})
    assert allowed(hinted) == {"h1", "h2", "h3"}  # without the filters, hints do nothing
    assert allowed(hinted, options=with_filters("SameHostFilter")) == {"h1"}
    for options, others in ((FilterOptions(), ()), (with_filters("DifferentHostFilter"), ("b",))):
        bindings = Bindings(SnapshotServers(), AT, HOSTS, options)
        assert tuple(bindings.pairs(hinted)) == others


SPECS = FLAVOR._replace(
    extra_specs={"aggregate_instance_extra_specs:ssd": "yes", "hw:numa_nodes": "1"}
)


@pytest.mark.parametrize(
    ("given", "aggregates", "options", "hosts"),
    [
        pytest.param(
            server(flavor=SPECS),
            {"1": aggregate("h1", ssd="yes"), "2": aggregate("h2", ssd="no")},
            with_filters("AggregateInstanceExtraSpecsFilter"),
            {"h1"},
            id="an extra spec of the scope, and none of another",
        ),
        pytest.param(
            server(project="p"),
            {
                "1": aggregate("h1", filter_tenant_id="q, r"),
                "2": aggregate("h2", filter_tenant_id="p"),
            },
            with_filters("AggregateMultiTenancyIsolation"),
            {"h2", "h3"},
            id="hosts of other projects",
        ),
        pytest.param(
            server(image=Image("i", {"os_type": "linux"})),
            {"1": aggregate("h1", os_type="windows"), "2": aggregate("h2", os_type="linux,bsd")},
            with_filters("AggregateImagePropertiesIsolation"),
            {"h2", "h3"},
            id="properties of the image",
        ),
        pytest.param(
            server(),
            {"1": aggregate("h1", instance_type="g"), "2": aggregate("h2", instance_type="f,g")},
            with_filters("AggregateTypeAffinityFilter"),
            {"h2", "h3"},
            id="names of flavors",
        ),
        pytest.param(
            server(project="p"),
            {"1": aggregate("h1", filter_tenant_id_1="p"), "2": aggregate("h2")},
            with_filters(limits_tenants=True),
            {"h1"},
            id="aggregates of the project",
        ),
        pytest.param(
            server(project="p"),
            {},
            with_filters(limits_tenants=True, requires_tenants=True),
            set(),
            id="a project without the aggregate that it needs",
        ),
        pytest.param(
            server(flavor=FLAVOR._replace(extra_specs={"trait:CUSTOM_A": "required"})),
            {
                "1": aggregate("h1", **{"trait:CUSTOM_A": "required"}),
                "2": aggregate("h2", **{"trait:CUSTOM_B": "required"}),
            },
            with_filters(isolates_aggregates=True),
            {"h1", "h3"},
            id="hosts that a trait isolates",
        ),
    ],
)
def test_metadata(
    given: SnapshotServer,
    aggregates: Mapping[str, SnapshotAggregate],
    options: FilterOptions,
    hosts: set[str],
) -> None:
    assert allowed(given, aggregates=aggregates, options=options) == hosts
    if options.enabled:  # with its filter off, nothing binds
        assert allowed(given, aggregates=aggregates) == {"h1", "h2", "h3"}


@pytest.mark.parametrize(
    ("value", "requirement", "is_met"),
    [
        ("yes", "yes", True),
        ("yes", "no", False),
        ("8", ">= 4", True),
        ("2", ">= 4", False),
        ("8", "= 4", True),  # as ">=", by Nova's documentation
        ("4", "== 4.0", True),
        ("a", "s== a", True),
        ("a", "s!= a", False),
        ("b", "<or> a <or> b", True),
        ("c", "<or> a <or> b", False),
        ("avx2", "<in> avx", True),
        ("a b", "<all-in> a b", True),
        ("a", "<all-in> a b", False),
        ("x", ">= 4", False),
        ("", ">=", False),
    ],
)
def test_requirements(value: str, requirement: str, is_met: bool) -> None:
    assert matches(value, requirement) is is_met


def queries_of(flavor: Flavor, image: Image | None) -> Request:
    return server_queries(ServerRequest(flavor=flavor, image=image))


def cloud(**more: Any) -> Snapshot:
    """Return three hosts, of which h0 has the server a."""
    return Snapshot(
        providers=tuple(provider(name, None, VCPU=8, MEMORY_MB=64) for name in ("h0", "h1", "h2")),
        consumers={"a": {"h0": {"VCPU": 2, "MEMORY_MB": 4}}},
        servers=SnapshotServers(
            servers={"a": server(state="ACTIVE", host="h0", **more)},
            aggregates={"1": aggregate("h0", "h2", zone="az"), "2": aggregate("h1", zone="b")},
            unread=frozenset(),
        ),
    )


def only(snapshot: Snapshot) -> Server:
    (found,) = read_cloud(snapshot, queries_of).servers
    return found


def test_a_pinned_server_goes_to_a_host_of_its_zone() -> None:
    hosts = read_cloud(cloud(zone="az"), queries_of)
    hosts.closed = frozenset({"h0"})
    plan = make_plan(hosts, Question(leaving=frozenset("a")), seconds=2)
    assert [step.move.host for step in plan.steps] == ["h2"]
    alone = replace(cloud(zone="az"), providers=cloud().providers[:2])
    assert only(alone).stays == (
        "it is pinned to the availability zone az, and no other host is left"
    )
    assert only(alone).homeless == only(alone).stays


def test_a_host_that_an_operator_disabled_suits_its_servers() -> None:
    given = cloud(zone="az")
    first, *others = given.providers
    off = replace(first, traits=first.traits | {DISABLED_TRAIT})
    hosts = read_cloud(replace(given, providers=(off, *others)), queries_of)
    relief = relief_of(hosts, frozenset(hosts.names), {}, {})
    assert (relief.question.leaving, relief.faults) == (frozenset(), [])


def test_a_new_server_of_a_flavor() -> None:
    """The filters of flavors bind a server that a plan makes room for; it has no project."""
    aggregates = {"1": aggregate("h1", ssd="yes"), "2": aggregate("h2", filter_tenant_id="p")}
    filters = ("AggregateInstanceExtraSpecsFilter", "AggregateMultiTenancyIsolation")
    known = SnapshotServers(aggregates=aggregates)
    bindings = Bindings(known, AT, HOSTS, with_filters(*filters))
    assert [binding.hosts for binding in bindings.of_flavor(SPECS)] == [{"h1"}]
    assert [*bindings.of_flavor(FLAVOR)] == []
    assert [*Bindings(known, AT, HOSTS, FilterOptions()).of_flavor(SPECS)] == []
