"""Objects of the cloud by name; the answers of the services stand here."""

from pathlib import Path
from typing import NoReturn

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Image
from cpu_tiers.tools.frame.cloud_objects import (
    aggregate_uuids,
    find_flavors,
    find_server,
    is_file,
    read_or_find_image,
    read_or_find_ports,
    server_ids,
)
from cpu_tiers.tools.frame.nova_servers import NovaApi
from cpu_tiers.tools.frame.server_request import UNKNOWN_FLAVOR
from cpu_tiers.tools.writers.networking import find_agents
from cpu_tiers.translators import ServerRequest
from tests.unit.cli.named_objects import CLOUD, SERVER, SPECS
from tests.unit.compute_api.catalog import Catalog

AGENTS = "/v2.0/agents?host=compute1"


def nobody() -> NoReturn:
    pytest.fail("the cloud is asked")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gold").touch()
    Path("folder").mkdir()
    for text in ("-", "missing.json", "/dev/fd/63", "./missing", "../missing", "gold"):
        assert is_file(text)
    for text in ("silver", "ubuntu/24.04", "folder", "", "x" * 999, "\0"):
        assert not is_file(text)


def test_flavors_are_asked_once() -> None:
    cloud = Catalog(CLOUD)
    gold, seven, same = find_flavors(NovaApi(cloud.services()), ["gold", "seven", "7"])
    assert gold.extra_specs == SPECS["extra_specs"]  # the name comes first
    assert (same, seven.ephemeral_gb) == (gold, 3)
    assert len(cloud.paths) == 1


def test_every_wrong_flavor_is_named() -> None:
    with pytest.raises(InvalidInput) as raised:
        find_flavors(NovaApi(Catalog(CLOUD).services()), ["sevn", "bad", "none-like-it"])
    lines = str(raised.value).splitlines()
    assert "--flavor: sevn: Nova has no such flavor; did you mean seven" in str(raised.value)
    assert any("none-like-it" in line and "openstack flavor list" in line for line in lines)
    assert any("flavor bad, vcpus" in line for line in lines)


def test_a_server() -> None:
    server = ServerRequest(flavor=UNKNOWN_FLAVOR)
    found = find_server(Catalog(CLOUD).services(), "s", server)
    assert (found.flavor.name, found.flavor.root_gb) == ("gold", 5)
    required = {"trait:HW_CPU_X86_AVX2": "required"}
    assert found.image == Image(name="i", properties=required, disk_format="qcow2")
    assert [port.id for port in found.ports] == ["p"]
    other = Image(name="other", properties={})
    found = find_server(Catalog(CLOUD).services(), "s", server._replace(image=other))
    assert found.image == other
    from_volume = {**CLOUD, ("compute", "/servers/s"): {"server": {**SERVER, "image": ""}}}
    of_volume = find_server(Catalog(from_volume).services(), "s", server)
    assert of_volume.flavor.root_gb == 0
    assert of_volume.image == Image("of the volume")


def test_ids_of_servers() -> None:
    uuid = "4C0F0B8E-7d4f-4b0e-9d0e-2f6f7b1f9a01"
    assert server_ids([uuid], nobody) == (uuid,)
    cloud = {
        ("compute", f"/servers/detail?all_tenants=1&name=%5E{name}%24"): {"servers": servers}
        for name, servers in {
            "web": [{"id": "1", "name": "web"}],
            "db": [{"id": "2", "name": "db"}, {"id": "3", "name": "db"}],
            "no": [],
        }.items()
    }
    assert server_ids(["web", uuid], Catalog(cloud).services) == ("1", uuid)
    with pytest.raises(InvalidInput) as raised:
        server_ids(["web", "db", "no"], Catalog(cloud).services)
    first, second = str(raised.value).splitlines()
    assert first.endswith("db: Nova's API has 2 servers with this name; give one of the ids: 2, 3")
    assert "no: Nova's API has no server with this name or id" in second


def test_aggregates_by_name() -> None:
    uuid, other = (f"{n * 8}-0000-4000-8000-{n * 12}" for n in "12")
    rack = {"id": 1, "name": "rack 1", "uuid": uuid}
    cloud = Catalog({("compute", "/os-aggregates"): {"aggregates": [rack, {**rack, "name": "b"}]}})
    found = aggregate_uuids([["rack 1", other], [other]], lambda: NovaApi(cloud.services()))
    assert list(map(set, found)) == [{uuid, other}, {other}]
    assert aggregate_uuids([[other]], nobody) == (frozenset({other}),)
    with pytest.raises(InvalidInput) as caught:
        aggregate_uuids([["rack 2", "Rack 1"]], lambda: NovaApi(cloud.services()))
    assert [fault.given.partition(":")[0] for fault in caught.value.faults] == ["Rack 1", "rack 2"]
    assert [fault.allowed for fault in caught.value.faults] == [
        "did you mean rack 1? openstack aggregate list shows the aggregates"
    ] * 2


def test_an_image_in_a_file_or_in_glance(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_text('{"name": "cirros", "properties": {"hw_numa_nodes": "2"}}')
    assert read_or_find_image(str(path), nobody).properties == {"hw_numa_nodes": "2"}
    found = read_or_find_image("i", Catalog(CLOUD).services)
    assert (found.name, found.disk_format) == ("i", "qcow2")
    empty = Catalog({("image", "/v2/images?name=ubuntu%2F24.04"): {"images": []}})
    with pytest.raises(InvalidInput, match=r"ubuntu/24\.04: Glance has no image with this name"):
        read_or_find_image("ubuntu/24.04", empty.services)
    with pytest.raises(InvalidInput, match=r"missing.json: cannot be read"):
        read_or_find_image("missing.json", nobody)


def test_every_wrong_port_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    cloud = Catalog({("network", "/v2.0/ports?name=slow"): {"ports": []}})
    with pytest.raises(InvalidInput) as raised:
        read_or_find_ports([str(tmp_path / "p.json"), "slow"], cloud.services)
    message = str(raised.value)
    assert "p.json: the id is None" in message
    assert "--port: slow: Neutron has no port with this name or id" in message


def agent(kind: str, **options: object) -> dict[str, object]:
    return {"id": kind, "host": "compute1", "agent_type": kind, "configurations": options}


def test_agents_of_a_host() -> None:
    switch = agent(
        "Open vSwitch agent",
        resource_provider_bandwidths={"br-ex": {"egress": 1000, "ingress": 2000}},
        resource_provider_hypervisors={"br-ex": "compute1.example.org"},
    )
    dhcp = agent("DHCP agent", networks=3)
    cloud = Catalog({("network", AGENTS): {"agents": [dhcp, switch]}})
    (found,) = find_agents(cloud.services(), "compute1")
    assert found.bandwidths == {"br-ex": {"egress": 1000, "ingress": 2000}}


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ([], "--host compute1: none of its 0 agents in Neutron reports bandwidths"),
        ([agent("DHCP agent")], "none of its 1 agents"),
        ([agent("Open vSwitch agent", resource_provider_bandwidths={})], "none of its 1 agents"),
        (
            [agent("OVN Controller agent", chassis_name="c")],
            "OVN Controller agent of host compute1, agent_type: .* output of `ovn-sbctl",
        ),
    ],
)
def test_hosts_without_bandwidths(agents: list[object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        find_agents(Catalog({("network", AGENTS): {"agents": agents}}).services(), "compute1")
