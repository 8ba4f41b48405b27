"""The answers from a snapshot, compared with those of the Placement that it was taken of."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.cloud_model.cloud import identity
from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_empty_cloud, read_whole_cloud
from cpu_tiers.tools.placement.explanation import Explanation, explain
from cpu_tiers.tools.placement.inventories import read_excesses, survey
from cpu_tiers.tools.placement.room import read_room
from cpu_tiers.tools.placement.snapshot_client import NotInSnapshot, SnapshotClient
from cpu_tiers.tools.reasons.never_served import never_served
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.translators import ServerRequest, fallback, translate
from tests import made_once
from tests.draws import clouds, repeatable
from tests.functional.placement.providing import provide
from tests.random_clouds.drawing import draw_hosts, draw_server
from tests.random_clouds.providers import CARD, NAMES, Providers
from tests.random_clouds.queries import request_of
from tests.random_clouds.states import draw_state, write_state

CONSUMER = "00000000-0000-4000-8000-000000000001"
FLAVOR = Flavor(name="small", vcpus=1, memory_mb=4, root_gb=1)


def test_random_clouds_give_equal_answers(embedded: PlacementClient) -> None:
    embedded.ensure_names(classes=[CARD], traits=NAMES)
    empty = made_once.copy_of_placement()
    counts: Counter[str] = Counter()
    for number in clouds(30):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            counts += check_cloud(embedded, random.Random(seed), is_flat=bool(number % 3))
    assert counts["hosts"] > counts["candidates"] > 0


def check_cloud(client: PlacementClient, rng: random.Random, *, is_flat: bool) -> Counter[str]:
    """Draw a cloud of hosts with NUMA nodes, or of any providers; compare all that is read."""
    if is_flat:
        write_state(draw_state(rng))
        request = ServerRequest(flavor=FLAVOR)
    else:
        hosts = draw_hosts(rng, "cn")
        Providers(hosts)
        request = request_of(draw_server(rng, hosts))
    second = fallback(request)
    queries = Request((translate(request), *((second,) if second else ())))
    snapshot = snapshot_of(client)
    from_snapshot = SnapshotClient(snapshot)
    live = explain(client, queries)
    assert shown(explain(from_snapshot, queries)) == shown(live)
    rooms = [read_room(each, [queries]) for each in (client, from_snapshot)]
    assert rooms[0] == rooms[1]
    for read in (survey, read_excesses):
        assert read(from_snapshot) == read(client)
    never = [never_served("f", queries.queries, empty_cloud(c)) for c in (client, from_snapshot)]
    assert never[0] == never[1]
    check_masked(snapshot, live, queries)
    return Counter(hosts=len(live.names), candidates=len(live.candidates))


def empty_cloud(client: PlacementClient) -> SimulatedCloud:
    return read_empty_cloud(client, client.traits_in_use())


def snapshot_of(client: PlacementClient) -> Snapshot:
    """Return a snapshot that has gone through its file."""
    providers = read_whole_cloud(client).providers
    # The allocations of a random cloud are those of a consumer that only the database knows.
    usages = {p.uuid: client.usages(p.uuid) for p in providers}
    used = {u: {name: n for name, n in usage.items() if n} for u, usage in usages.items()}
    consumers = {
        "servers that exist": {uuid: amounts for uuid, amounts in used.items() if amounts}
    }
    document = Snapshot(providers=providers, consumers=consumers).to_json()
    return Snapshot.parse(document, where="snapshot.json")


def check_masked(snapshot: Snapshot, live: Explanation, queries: Request) -> None:
    """Check the answers of a masked snapshot: the same, with other names."""
    mask = masked(snapshot)
    names = {p.name: m.name for p, m in zip(snapshot.providers, mask.providers, strict=True)}
    found = explain(SnapshotClient(mask), queries)
    assert sorted(found.names.values()) == sorted(names[name] for name in live.names.values())
    # Without an aggregate, whose name is masked, too.
    assert sorted(found.without.items()) == sorted(live.without.items())
    by_name = {names[live.names[host]]: reason for host, reason in live.reasons.items()}
    assert {found.names[host]: reason for host, reason in found.reasons.items()} == by_name


def shown(explanation: Explanation) -> Mapping[str, Any]:
    """Return an explanation whose candidates are in any order."""
    answer = explanation.answer
    return {
        **asdict(explanation),
        "answer": {
            "requests": {identity(request) for request in answer.allocation_requests},
            "summaries": {
                uuid: {**summary, "traits": sorted(summary["traits"])}
                for uuid, summary in answer.provider_summaries.items()
            },
        },
    }


def test_each_read_of_a_provider(embedded: PlacementClient) -> None:
    host = provide(embedded, "one", ["HW_CPU_X86_AVX2"], VCPU=8)
    embedded.set_consumers(
        Consumer(
            uuid=CONSUMER,
            allocations=Portion.by_id({host: {"VCPU": 3}}),
            project_id="p",
            user_id="u",
        )
    )
    client = SnapshotClient(read_whole_cloud(embedded))
    for each in (client, embedded):
        assert each.provider(host).name == "one"
        assert [p.name for p in each.providers_in_tree(host)] == ["one"]
        assert each.find_provider("one") == each.provider(host)
        assert each.find_provider("two") is None
        assert each.traits(host).names == {"HW_CPU_X86_AVX2"}
        assert each.aggregates(host) == frozenset()
        assert each.usages(host) == {"VCPU": 3}
        assert each.allocations(host) == {CONSUMER: {"VCPU": 3}}
        assert each.providers_with_trait("HW_CPU_X86_AVX2") == each.providers()
        assert each.providers_with_trait("CUSTOM_NEVER_SEEN") == ()
    assert client.microversion == (1, 39)


def test_nothing_is_written() -> None:
    client = SnapshotClient(Snapshot(providers=(), consumers={}))
    with pytest.raises(NotInSnapshot, match="PUT /traits/CUSTOM_X: a snapshot answers no such"):
        client.create_trait("CUSTOM_X")
    with pytest.raises(NotInSnapshot, match="POST /allocations"):
        client.set_consumers(Consumer(uuid="1"))
    with pytest.raises(NotInSnapshot, match="the snapshot has no provider 1"):
        client.inventories("1")
