"""The servers of a snapshot: what each requests, and why some stay."""

from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.hosts import Server
from cpu_tiers.tools.plan.read import NO_SERVERS, hosts_named, read_cloud, unknown_of
from cpu_tiers.tools.room.server_queries import server_queries
from cpu_tiers.translators import ServerRequest
from tests.unit.cloud_model.clouds import provider

FLAVOR = Flavor(name="f", vcpus=2, memory_mb=4, root_gb=8)
PROVIDERS = (
    provider("h0", None, VCPU=8, MEMORY_MB=64, DISK_GB=90),
    provider("h1", None, VCPU=8, MEMORY_MB=64, DISK_GB=90),
    provider("nic", "h0", "CUSTOM_PHYSNET_A", "CUSTOM_OTHER", NET_BW_EGR_KILOBIT_PER_SEC=9),
)
HELD = {"h0": {"VCPU": 2, "MEMORY_MB": 4}}


def queries_of(flavor: Flavor) -> tuple[CandidateQuery, ...]:
    return server_queries(ServerRequest(flavor=flavor)).first


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
    assert server.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4}
    with_disk = read(snapshot({"h0": {**HELD["h0"], "DISK_GB": 8}}))
    assert with_disk.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4, "DISK_GB": 8}


def test_the_bandwidth_of_a_port_is_requested_as_it_is() -> None:
    server = read(snapshot({**HELD, "nic": {"NET_BW_EGR_KILOBIT_PER_SEC": 3}}))
    port = server.queries[0].groups[-1]
    assert port.resources == {"NET_BW_EGR_KILOBIT_PER_SEC": 3}
    assert port.required == {"CUSTOM_PHYSNET_A"}


def test_a_snapshot_of_version_1() -> None:
    given = snapshot(version_1=True)
    (server,) = read_cloud(given, queries_of).servers
    assert (server.name, server.stays) == ("a", "")
    assert server.queries[0].resources() == {"VCPU": 2, "MEMORY_MB": 4}
    assert unknown_of(given)[0] == NO_SERVERS


AFFINITY = {"g": ServerGroup(name="pair", policy="affinity", members=("a", "b"))}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        pytest.param({"state": "SHUTOFF"}, "powered off: --cold", id="off"),
        pytest.param({"state": "ERROR"}, "in state ERROR", id="a state"),
        pytest.param({"task": "resize_prep"}, "Nova works on it (resize_prep)", id="a task"),
        pytest.param({"is_locked": True}, "it is locked", id="locked"),
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


def test_a_consumer_that_is_no_server() -> None:
    given = snapshot()
    consumers = {"migration": HELD}
    assert (
        "no server of Nova"
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
