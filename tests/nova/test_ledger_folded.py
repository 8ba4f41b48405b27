"""What Nova's own tests see of a host with NUMA nodes, in a real Placement."""

import importlib
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from nova.tests.functional.fixtures import PlacementApiClient, PlacementFixture

from tests.ledger.workers import WORKER

CONSUMER = str(uuid.uuid4())
HOST, NODE, PAGES, DEVICE = (str(uuid.uuid4()) for _ in range(4))
PROVIDERS = {
    HOST: ("one", None, {"DISK_GB": 100, "MEMORY_MB": 10}),
    NODE: ("one_NUMA0", HOST, {"VCPU": 8}),
    PAGES: ("one_NUMA0_PAGES_4", NODE, {"MEMORY_MB": 4096}),
    DEVICE: ("one_0000:81:00.0", HOST, {"PCI_DEVICE": 1}),
}
HELD = {HOST: {"DISK_GB": 20}, NODE: {"VCPU": 2}, PAGES: {"MEMORY_MB": 1024}}
OF_HOST = {"DISK_GB": 20, "VCPU": 2, "MEMORY_MB": 1024}
"""What the consumer holds, as of a host without NUMA nodes."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlacementApiClient]:
    """A Placement with a host, a server on it, and another provider; read as the ledger does."""
    monkeypatch.syspath_prepend(WORKER.parent)
    folded = importlib.import_module("folded")
    fixture = PlacementFixture()
    with fixture:
        client = PlacementApiClient(fixture)
        for provider, (name, parent, totals) in PROVIDERS.items():
            body: dict[str, Any] = {"uuid": provider, "name": name, "parent_provider_uuid": parent}
            client.post("/resource_providers", body, version="1.20")
            inventories = {each: {"total": total} for each, total in totals.items()}
            body = {"resource_provider_generation": 0, "inventories": inventories}
            client.put(f"/resource_providers/{provider}/inventories", body, version="1.20")
        ids = {"project_id": "p", "user_id": "u", "consumer_generation": None}
        allocations = {each: {"resources": amounts} for each, amounts in HELD.items()}
        body = {"allocations": allocations, **ids}
        assert client.put(f"/allocations/{CONSUMER}", body, version="1.28").status == 204
        monkeypatch.setattr(PlacementApiClient, "get", folded.get)
        yield client
    sys.modules.pop("folded")


def read(client: PlacementApiClient, url: str) -> dict[str, Any]:
    return dict(client.get(url, version="1.20").body)


def test_a_host_has_only_the_providers_of_devices(client: PlacementApiClient) -> None:
    for url in ("/resource_providers", f"/resource_providers?in_tree={HOST}"):
        found = {each["uuid"] for each in read(client, url)["resource_providers"]}
        assert found == {HOST, DEVICE}


def test_the_root_provider_has_the_amounts_of_nodes_and_pages(client: PlacementApiClient) -> None:
    path = f"/resource_providers/{HOST}"
    assert read(client, f"{path}/usages")["usages"] == OF_HOST
    inventories = read(client, f"{path}/inventories")["inventories"]
    totals = {name: each["total"] for name, each in inventories.items()}
    assert totals == {"DISK_GB": 100, "MEMORY_MB": 4106, "VCPU": 8}
    held = read(client, f"{path}/allocations")["allocations"]
    assert held[CONSUMER]["resources"] == OF_HOST
    assert read(client, f"/resource_providers/{DEVICE}/usages")["usages"] == {"PCI_DEVICE": 0}


def test_a_server_holds_all_of_the_root_provider(client: PlacementApiClient) -> None:
    held = read(client, f"/allocations/{CONSUMER}")["allocations"]
    assert {each: of["resources"] for each, of in held.items()} == {HOST: OF_HOST}


def test_an_error_is_unchanged(client: PlacementApiClient) -> None:
    answer = client.get(f"/resource_providers/{uuid.uuid4()}/inventories", version="1.20")
    assert answer.status == 404
