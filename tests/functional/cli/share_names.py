"""Hosts under both names of VCPU_SHARES, on the day on which VCPU_SHARES is standard.

``test_share_rename.py`` runs this module, in a process with the later os-resource-classes.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.errors import ProviderNotFound
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.response import ShareNames
from cpu_tiers.tools.placement.share_rename import rename_shares
from cpu_tiers.tools.placement.sync import sync
from tests.functional.cli.upgrade_check import check, results

CUSTOM, STANDARD = "CUSTOM_VCPU_SHARES", "VCPU_SHARES"
MOVING, STAYING = (f"5f5a0a4e-0000-4000-8000-00000000000{n}" for n in (1, 2))


def tree(host: str, shares: int = 1600) -> ProviderTree:
    inventories = {"VCPU": 16, VCPU_SHARES: shares}
    return ProviderTree(
        providers=(
            ResourceProvider(
                name=host,
                inventories={n: Inventory(total=t, max_unit=t) for n, t in inventories.items()},
            ),
        ),
        managed_classes=frozenset(inventories),
    )


def before(client: PlacementClient, host: str) -> str:
    """Write a host as it was on the day before; return its uuid."""
    client.create_resource_class(CUSTOM)
    uuid = client.create_provider(host).uuid
    client.share_names.others.add(uuid)
    by_class = tree(host).root.inventories
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def hold(client: PlacementClient, consumer: str, *hosts: str) -> None:
    amounts = {"VCPU": 2, VCPU_SHARES: 200}
    present = client.consumer(consumer)
    client.set_consumers(
        Consumer(
            uuid=consumer,
            allocations=Portion.by_id(dict.fromkeys(hosts, amounts)),
            project_id="project",
            user_id="user",
            generation=present.generation,
        )
    )


def raw(client: PlacementClient, path: str) -> str:
    """Return the names of VCPU_SHARES that Placement has under a path, without our translation."""
    exchange = client._exchange
    kept, exchange.share_names = exchange.share_names, Untranslated()
    text = exchange.request("GET", path).content.decode()
    exchange.share_names = kept
    return " ".join(name for name in (CUSTOM, STANDARD) if f'"{name}"' in text)


class Untranslated(ShareNames):
    def read(self, path: str, content: bytes) -> bytes:
        return content


def names_of(client: PlacementClient, uuids: Sequence[str]) -> list[str]:
    return [raw(client, f"/resource_providers/{uuid}/inventories") for uuid in uuids]


def test_the_library_is_later() -> None:
    assert (VCPU_SHARES, OTHER_SHARES) == (STANDARD, CUSTOM)


def test_a_sync_keeps_the_name_of_a_host(client: PlacementClient) -> None:
    uuid = before(client, "one")
    assert sync(client, tree("one")) == ()
    changes = sync(client, tree("one", shares=800))
    assert [change.what for change in changes] == ["VCPU_SHARES total", "VCPU_SHARES max_unit"]
    assert names_of(client, [uuid]) == [CUSTOM]
    assert client.inventories(uuid).by_class[VCPU_SHARES].total == 800


def test_hosts_with_both_names_are_candidates(client: PlacementClient) -> None:
    sync(client, tree("two"))
    two = client.find_provider("two")
    assert two is not None
    query = CandidateQuery(groups=(RequestGroup(resources={VCPU_SHARES: 100, "VCPU": 1}),))
    # Placement does not know CUSTOM_VCPU_SHARES, and answers 400 to the second query.
    assert set(client.candidates(query).provider_summaries) == {two.uuid}
    one = before(client, "one")
    answer = client.candidates(query)
    assert set(answer.provider_summaries) == {one, two.uuid}
    for summary in answer.provider_summaries.values():
        assert summary["resources"][VCPU_SHARES] == {"capacity": 1600, "used": 0}
    without = CandidateQuery(groups=(RequestGroup(resources={"VCPU": 1}),))
    assert len(client.candidates(without).allocation_requests) == 2


def test_a_rename(client: PlacementClient, seen: list[str]) -> None:
    one, two = before(client, "one"), before(client, "two")
    hold(client, STAYING, one)
    hold(client, MOVING, one, two)
    planned = rename_shares(client, "one", is_applied=False)
    assert names_of(client, [one, two]) == [CUSTOM, CUSTOM]
    seen.clear()
    assert rename_shares(client, "one") == planned
    writes = [line for line in seen if not line.startswith("GET")]
    assert writes == ["POST /reshaper"]
    assert [(c.what, c.before, c.after) for c in planned] == [
        ("inventory", f"1600 {CUSTOM}", f"1600 {STANDARD}"),
        (f"allocations of {MOVING}", f"200 {CUSTOM}", f"200 {STANDARD}"),
        (f"allocations of {STAYING}", f"200 {CUSTOM}", f"200 {STANDARD}"),
    ]
    assert names_of(client, [one, two]) == [STANDARD, CUSTOM]
    assert raw(client, f"/allocations/{STAYING}") == STANDARD
    assert raw(client, f"/allocations/{MOVING}") == f"{CUSTOM} {STANDARD}"
    assert raw(client, f"/resource_providers/{two}/allocations") == CUSTOM
    assert rename_shares(client, "one") == ()


def test_a_host_without_servers_or_without_shares(client: PlacementClient) -> None:
    one = before(client, "one")
    client.create_provider("bare")
    assert len(rename_shares(client, "one")) == 1
    assert names_of(client, [one]) == [STANDARD]
    assert rename_shares(client, "bare") == ()
    with pytest.raises(ProviderNotFound, match="no provider none"):
        rename_shares(client, "none")


@pytest.mark.parametrize("fault", ["JSON 409", "HTML 503", "answer lost"])
def test_a_fault_at_the_transaction(
    client: PlacementClient, faults: list[tuple[str, str]], fault: str
) -> None:
    one = before(client, "one")
    hold(client, STAYING, one)
    faults.append(("POST /reshaper", fault))
    assert len(rename_shares(client, "one")) == 2
    assert names_of(client, [one]) == [STANDARD]
    assert raw(client, f"/allocations/{STAYING}") == STANDARD


def test_the_command(
    client: PlacementClient,
    run: Callable[..., Any],
    save: Callable[..., Any],
    placement_conf: Path,
) -> None:
    one = before(client, "one")
    hold(client, STAYING, one)
    shares = save("[libvirt]\nreport_vcpu_shares = true\n", "shares.conf")
    conf = ("--config-file", placement_conf, "--config-file", shares)
    command = ("reshape", "rename", "--host", "one", "-f", "json")
    planned = json.loads(run(*command, "--dry-run", *conf).stdout)
    assert names_of(client, [one]) == [CUSTOM]
    refusal = run(*command, "--config-file", placement_conf, status=1).stderr
    assert "[libvirt] report_vcpu_shares: not true" in refusal
    assert json.loads(run(*command, *conf).stdout) == planned != []
    assert names_of(client, [one]) == [STANDARD]
    again = run(*command, *conf)
    assert json.loads(again.stdout) == []
    assert again.stderr == "No provider of the host has the name CUSTOM_VCPU_SHARES.\n"


def test_the_upgrade_check(client: PlacementClient, placement_conf: Path) -> None:
    def checked() -> Any:
        return results(check(placement_conf, "--json")[1])["Name of VCPU_SHARES"]

    assert checked() == (0, None)
    sync(client, tree("two"))
    assert checked() == (0, None)
    before(client, "one")
    code, text = checked()
    assert code == 1
    assert text.startswith("1 of 2 hosts with the name CUSTOM_VCPU_SHARES: for one, run cpu-tiers")
    rename_shares(client, "one")
    assert checked() == (0, None)
