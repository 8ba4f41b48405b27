"""The servers of a snapshot: what each requests, and why some stay."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    MIGRATIONS,
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.bindings import FilterOptions
from cpu_tiers.tools.plan.hosts import Server, with_traits
from cpu_tiers.tools.plan.read import hosts_named, read_cloud
from cpu_tiers.tools.plan.unread import NO_SERVERS, unread_of
from cpu_tiers.tools.room.server_queries import Request, server_queries
from cpu_tiers.translators import ServerRequest
from tests.unit.cloud_model.clouds import provider

FLAVOR = Flavor(name="f", vcpus=2, memory_mb=4, root_gb=8)
PROVIDERS = (
    provider("h0", None, VCPU=8, MEMORY_MB=64, DISK_GB=90),
    provider("h1", None, VCPU=8, MEMORY_MB=64, DISK_GB=90),
    provider("nic", "h0", "CUSTOM_PHYSNET_A", "CUSTOM_OTHER", NET_BW_EGR_KILOBIT_PER_SEC=9),
)
HELD = {"h0": {"VCPU": 2, "MEMORY_MB": 4}}


def queries_of(flavor: Flavor, image: Image | None) -> Request:
    return server_queries(ServerRequest(flavor=flavor, image=image))


def snapshot(
    held: Any = None, *, version_1: bool = False, groups: Any = None, **more: Any
) -> Snapshot:
    known = {
        "a": SnapshotServer(name="web", **{"flavor": FLAVOR, "state": "ACTIVE", **more}),
        "b": SnapshotServer(name="db", flavor=FLAVOR, state="ACTIVE"),
    }
    servers = SnapshotServers(servers=known, groups=groups or {}, services={"h1": "short"})
    return Snapshot(
        providers=PROVIDERS,
        consumers={"a": held or HELD},
        flavors=(FLAVOR,),
        servers=None if version_1 else servers,
    )


def read(given: Snapshot, *, is_cold: bool = False) -> Server:
    (server,) = read_cloud(given, queries_of, is_cold=is_cold).servers
    return server


def test_a_server_requests_its_flavor_without_the_disk_of_a_volume() -> None:
    server = read(snapshot())
    assert (server.uuid, server.name, server.host, server.stays) == ("a", "web", "h0", "")
    assert server.request.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4}
    with_disk = read(snapshot({"h0": {**HELD["h0"], "DISK_GB": 8}}))
    assert with_disk.request.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4, "DISK_GB": 8}


def test_the_bandwidth_of_a_port_is_requested_as_it_is() -> None:
    server = read(snapshot({**HELD, "nic": {"NET_BW_EGR_KILOBIT_PER_SEC": 3}}))
    port = server.request.queries[0].groups[-1]
    assert port.resources == {"NET_BW_EGR_KILOBIT_PER_SEC": 3}
    assert port.required == {"CUSTOM_PHYSNET_A"}


def test_what_a_server_holds_beside_its_request_is_not_requested() -> None:
    flavor = FLAVOR._replace(extra_specs={"trait:HW_CPU_X86_AVX2": "required"})
    held = {"h0": {**HELD["h0"], "CUSTOM_VCPU_SHARES": 200, "CUSTOM_NUMA_SERVER": 1}}
    (query,) = read(snapshot(held, flavor=flavor)).request.queries
    assert query.resources() == {"VCPU": 2, "MEMORY_MB": 4}
    assert "HW_CPU_X86_AVX2" in query.required_traits()


def test_a_server_with_a_numa_node_has_the_query_of_its_flavor() -> None:
    flavor = FLAVOR._replace(root_gb=0, extra_specs={"hw:numa_nodes": "1"})
    held = {"h0": {"CUSTOM_NUMA_SERVER": 1}, "n0": {"VCPU": 2}, "m0": {"MEMORY_MB": 4}}
    providers = (*PROVIDERS, provider("n0", "h0", VCPU=8), provider("m0", "n0", MEMORY_MB=64))
    given = replace(snapshot(held, flavor=flavor), providers=providers)
    request = ServerRequest(flavor=flavor, query_numa=True)
    (server,) = read_cloud(given, lambda *_: server_queries(request)).servers
    assert server.request == server_queries(request)
    assert server.request.queries[0].same_subtree


def test_a_pinned_server_may_go_where_no_cpus_are_dedicated() -> None:
    """nova-scheduler asks for VCPU of a host that has no candidate with PCPU."""
    flavor = FLAVOR._replace(root_gb=0, extra_specs={"hw:cpu_policy": "dedicated"})
    dedicated = provider("h2", None, VCPU=8, PCPU=1, MEMORY_MB=64)
    given = replace(snapshot(HELD, flavor=flavor), providers=(*PROVIDERS, dedicated))
    hosts = read_cloud(given, queries_of)
    (server,) = hosts.servers
    moves = {root: hosts.migration(server, root, hosts.room()) for root in ("h1", "h2")}
    assert moves["h1"] is not None
    assert dict(moves["h1"].amounts) == {("h1", "VCPU"): 2, ("h1", "MEMORY_MB"): 4}
    assert moves["h2"] is None  # it has VCPU, but its dedicated CPUs do not suffice


def test_hosts_that_nova_leaves_out_take_no_server() -> None:
    """h1 has a nova-compute, and h2 is the provider of a removed host."""
    removed = provider("h2", None, "COMPUTE_NODE", VCPU=8, MEMORY_MB=64)
    compute = tuple(replace(p, traits=frozenset({"COMPUTE_NODE"})) for p in PROVIDERS[:2])
    given = replace(snapshot(), providers=(*compute, removed))
    assert given.servers is not None
    services = {"h0": "h0", "h1": "h1"}
    given = replace(given, servers=replace(given.servers, services=services, down=("h1",)))
    assert read_cloud(given, queries_of).closed == {"h1", "h2"}


def test_a_snapshot_of_version_1() -> None:
    given = snapshot(version_1=True)
    (server,) = read_cloud(given, queries_of).servers
    assert (server.name, server.stays) == ("a", "")
    assert server.request.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4}
    assert unread_of(given, FilterOptions()) == (NO_SERVERS,)


AFFINITY = {"g": ServerGroup(name="pair", policy="affinity", members=("a", "b"))}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        pytest.param({"state": "SHUTOFF"}, "powered off: --cold", id="off"),
        pytest.param({"state": "ERROR"}, "in state ERROR", id="a state"),
        pytest.param({"task": "resize_prep"}, "Nova works on it (resize_prep)", id="a task"),
        pytest.param({"stays": "license"}, "license", id="the operator's word"),
        pytest.param({"groups": AFFINITY}, "affinity group pair", id="affinity"),
        pytest.param(
            {"flavor": FLAVOR._replace(extra_specs={"pci_passthrough:alias": "gpu:1"})},
            "a PCI device",
            id="an alias",
        ),
        pytest.param({"held": {"h0": {"VCPU": 2, "VGPU": 1}}}, "virtual GPU", id="a device"),
        pytest.param(
            {"held": {"h0": {"VCPU": 2}, "h1": {"VCPU": 2}}}, "several hosts", id="on two hosts"
        ),
    ],
)
def test_why_a_server_stays(more: Any, why: str) -> None:
    assert why in read(snapshot(**more)).stays


def test_what_may_move_all_the_same() -> None:
    assert read(snapshot(state="PAUSED")).stays == ""
    off = read(snapshot(state="SHUTOFF"), is_cold=True)
    assert (off.stays, off.is_off) == ("", True)
    soft = {"g": ServerGroup(name="g", policy="soft-affinity", members=("a", "b"))}
    assert read(snapshot(groups=soft)).stays == ""


def test_an_administrator_may_move_a_locked_server() -> None:
    assert read(snapshot(is_locked=True)).stays == ""


@pytest.mark.parametrize("is_known", [True, False])
def test_nova_evacuates_an_unconfirmed_resize_after_its_source_confirms(is_known: bool) -> None:
    moves = {"m": migration("resize", "finished")} if is_known else {}
    server = read(placed({"a": {"h1": {"VCPU": 3}}}, state="VERIFY_RESIZE", migrations=moves))
    assert ("in state VERIFY_RESIZE" in server.homeless) is not is_known
    assert "resize confirm" in server.stays


def test_a_consumer_that_is_no_server() -> None:
    given = snapshot()
    consumers = {"migration": HELD}
    assert (
        "of no server: a migration or another consumer"
        in read(
            Snapshot(providers=given.providers, consumers=consumers, servers=given.servers)
        ).stays
    )


def test_hosts_by_both_names() -> None:
    hosts = read_cloud(snapshot(), queries_of)
    assert hosts_named(hosts, ["h0", "short"], "HOST") == {"h0": "h0", "short": "h1"}
    with pytest.raises(InvalidInput, match="HOST: h9: the cloud has no such host"):
        hosts_named(hosts, ["h9"], "HOST")


def test_the_document_and_a_masked_snapshot_have_the_servers() -> None:
    given = snapshot(groups=AFFINITY, is_locked=True)
    assert Snapshot.parse(given.to_json(), where="s") == given
    hidden = masked(given)
    assert Snapshot.parse(hidden.to_json(), where="s") == hidden
    assert "affinity group group-1" in read(masked(snapshot(groups=AFFINITY))).stays
    assert "web" not in str(hidden.to_json())
    version_1 = {**snapshot(version_1=True).to_json(), "version": 1}
    assert Snapshot.parse(version_1, where="s").servers is None


def placed(
    consumers: dict[str, dict[str, dict[str, int]]],
    *,
    host: str = "h1",
    migrations: Any = None,
    **more: Any,
) -> Snapshot:
    """Return a cloud in which Nova has the server a on a host."""
    server = SnapshotServer(name="web", host=host, **{"flavor": FLAVOR, "state": "ACTIVE", **more})
    return Snapshot(
        providers=PROVIDERS,
        consumers=consumers,
        servers=SnapshotServers(
            servers={"a": server},
            migrations=migrations or {},
            services={"h0": "h0", "h1": "short"},
            unread=frozenset(),
        ),
    )


def migration(kind: str, status: str, source: str = "h0", target: str = "h1") -> ServerMigration:
    return ServerMigration(server="a", kind=kind, status=status, source=source, target=target)


ON_BOTH = {**HELD, "h1": {"VCPU": 3, "MEMORY_MB": 4}}


def test_an_evacuated_server_is_on_its_new_host_with_what_it_holds_there() -> None:
    moves = {"m": migration("evacuation", "done")}
    server = read(placed({"a": ON_BOTH}, migrations=moves))
    assert (server.host, server.stays, server.is_lost_with_host) == ("h1", "", True)
    assert dict(server.amounts) == {("h1", "VCPU"): 3, ("h1", "MEMORY_MB"): 4}


def test_the_source_of_an_unconfirmed_resize_stays_and_is_not_lost() -> None:
    moves = {"m": migration("resize", "finished")}
    both = {"m": HELD, "a": {"h1": {"VCPU": 3}}}
    source, server = read_cloud(placed(both, migrations=moves), queries_of).servers
    assert (source.host, source.is_lost_with_host, source.name) == ("h0", False, "web")
    assert "not confirmed: openstack server resize confirm a" in source.stays
    assert (server.host, server.is_lost_with_host) == ("h1", True)


def test_the_guest_of_a_live_migration_is_lost_with_the_source() -> None:
    moves = {"m": migration("live-migration", "running")}
    both = {"m": HELD, "a": {"h1": {"VCPU": 2}}}
    given = placed(both, host="h0", task="migrating", migrations=moves)
    source, target = read_cloud(given, queries_of).servers
    assert (source.host, source.is_lost_with_host) == ("h0", True)
    assert (target.host, target.is_lost_with_host) == ("h1", False)
    assert source.stays.startswith("the source of a migration")
    assert target.stays.startswith("the target of a move")


def test_a_misplaced_server_is_where_nova_has_it_and_gives_nothing_back_there() -> None:
    server = read(placed({"a": HELD}))
    assert (server.host, server.amounts, server.is_lost_with_host) == ("h1", (), True)
    assert "on another host than the server: openstack resource provider" in server.stays


def test_what_a_server_without_a_host_holds_is_no_guest() -> None:
    server = read(placed({"a": HELD}, host="", state="SHELVED_OFFLOADED"))
    assert (server.host, server.is_lost_with_host) == ("h0", False)


def test_an_orphan_stays_with_the_command_that_frees_it() -> None:
    orphan = read(placed({"x": HELD}))
    assert not orphan.is_lost_with_host
    assert orphan.stays.endswith("openstack resource provider allocation delete x")


def test_the_room_of_a_new_server_is_where_its_flavor_may_go() -> None:
    given = snapshot()
    assert given.servers is not None
    aggregates = {"1": SnapshotAggregate(name="a", hosts=("h1",), metadata={"ssd": "yes"})}
    given = replace(given, servers=replace(given.servers, aggregates=aggregates))
    options = FilterOptions(enabled=frozenset({"AggregateInstanceExtraSpecsFilter"}))
    fast = FLAVOR._replace(extra_specs={"aggregate_instance_extra_specs:ssd": "yes"})
    # 8 CPUs on h1, and 8 - 2 on h0, of which nova-scheduler takes none
    for flavor, room in ((fast, 4), (FLAVOR, 7)):
        hosts = read_cloud(given, queries_of, options=options, new=flavor)
        assert hosts.count(with_traits(queries_of(flavor, None), hosts.traits_of_new)) == room


def test_servers_stand_in_the_order_of_nova() -> None:
    """Nova's list begins with the newest server: so does an evacuation of a whole host."""
    given = replace(snapshot(), consumers={"b": HELD, "a": HELD})
    assert [server.uuid for server in read_cloud(given, queries_of).servers] == ["a", "b"]


@pytest.mark.parametrize("is_known", [True, False])
def test_twice_as_many_servers_are_twice_the_work(is_known: bool) -> None:
    """Counted in entered functions and generators: a loop over all servers for each is many."""

    def cloud(number: int) -> Snapshot:
        zone = SnapshotAggregate(
            name="az", zone="az", hosts=tuple(f"h{n}" for n in range(number)), metadata={}
        )
        hosts = [provider(f"h{n}", None, VCPU=8, MEMORY_MB=64, DISK_GB=90) for n in range(number)]
        moves = {
            f"m{n}": ServerMigration(
                server=f"s{n}", kind="resize", status="finished", source=f"h{n}", target=f"h{n}"
            )
            for n in range(number)
        }
        servers = {
            f"s{n}": SnapshotServer(
                name=f"s{n}", host=f"h{n}", flavor=FLAVOR, state="ACTIVE", zone="az"
            )
            for n in range(number)
        }
        unread = frozenset[str]() if is_known else frozenset({MIGRATIONS})
        known = SnapshotServers(
            servers=servers, migrations=moves, aggregates={"1": zone}, unread=unread
        )
        consumers = {f"s{n}": {f"h{n}": {"VCPU": 2, "MEMORY_MB": 4}} for n in range(number)}
        return Snapshot(providers=tuple(hosts), consumers=consumers, servers=known)

    few, many = (entered(partial(read_cloud, cloud(number), queries_of)) for number in (100, 200))
    assert many < 2.2 * few


def entered(call: Callable[[], object]) -> int:
    """Return how often a call enters a function or goes on with a generator."""
    events = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: events.update([event]))
    try:
        call()
    finally:
        sys.setprofile(None)
    return events["call"]
