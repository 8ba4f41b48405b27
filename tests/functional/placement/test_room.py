"""The room for servers, claimed on a real Placement until it refuses."""

import itertools
import random
import uuid
from collections.abc import Mapping, Sequence

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.placement.errors import InsufficientCapacity
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.room import read_room
from cpu_tiers.tools.room.count import CloudRoom
from cpu_tiers.tools.room.server_queries import Request, server_queries
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.numa import cheaper
from tests import made_once
from tests.draws import clouds, repeatable
from tests.functional.placement.providing import provide, put_into_aggregate
from tests.random_clouds.drawing import draw_hosts, draw_server
from tests.random_clouds.largest_packing import most_packages
from tests.random_clouds.providers import CARD, NAMES, Providers
from tests.random_clouds.queries import request_of

MOST = 24
"""More servers than this take too long to try in every order."""


def test_random_trees_take_as_many_claims_and_no_more(embedded: PlacementClient) -> None:
    embedded.ensure_names(classes=[CARD, "CUSTOM_NUMA_SERVER"], traits=NAMES)
    empty = made_once.copy_of_placement()
    claimed = 0
    drawn = clouds(20)
    for number in itertools.count(drawn.start):
        if claimed and number not in drawn:  # a day may draw no cloud with room
            break
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            claimed += _check_cloud(embedded, random.Random(seed))
    assert claimed


def _check_cloud(client: PlacementClient, rng: random.Random) -> int:
    """Draw a cloud, and claim as many servers of a flavor as there is room for."""
    hosts = draw_hosts(rng, "cn")
    Providers(hosts)
    request = request_of(draw_server(rng, hosts))
    queries = tuple(query for query in (translate(request), fallback(request)) if query)
    (room,) = read_room(client, [Request(queries)])
    assert room.is_exact
    assert room.hosts.keys() == {host.name for host in hosts}
    assert room.more == sum(host.more for host in room.hosts.values())  # without a pool
    assert all(host.limited_by for host in room.hosts.values())
    answers = [client.candidates(cheaper(query)).usable() for query in queries]
    if room.more > MOST:
        return 0
    claims = _largest(answers)
    assert len(claims) == room.more
    if claims:
        client.set_consumers(*map(_consumer, claims))
    candidates = {
        str(r.allocations): r.allocations for a in answers for r in a.allocation_requests
    }
    for allocations in candidates.values():
        with pytest.raises(InsufficientCapacity):
            client.set_consumers(_consumer(allocations))
    return room.more


def _largest(answers: Sequence[CandidatesAnswer]) -> list[Mapping[str, Mapping[str, int]]]:
    """Return as many candidates as fit together, by trying all."""
    candidates = [r.allocations for answer in answers for r in answer.allocation_requests]
    room = {
        (provider, name): max(0, amounts["capacity"] - amounts["used"])
        for answer in answers
        for provider, summary in answer.provider_summaries.items()
        for name, amounts in summary["resources"].items()
    }
    packages = [{(p, c): n for p, of in a.items() for c, n in of.items()} for a in candidates]
    needed = {row for package in packages for row in package}
    chosen = most_packages(packages, {row: room[row] for row in needed})
    return [candidates[number] for number in chosen]


def _consumer(allocations: Mapping[str, Mapping[str, int]]) -> Consumer:
    return Consumer(
        uuid=str(uuid.uuid4()),
        allocations=Portion.by_id(allocations),
        project_id="project",
        user_id="user",
    )


FLAVOR = Flavor(name="gold", vcpus=2, memory_mb=1024, root_gb=10)


def read(client: PlacementClient) -> CloudRoom:
    (room,) = read_room(client, [server_queries(ServerRequest(flavor=FLAVOR))])
    return room


def test_a_pool_of_several_hosts(embedded: PlacementClient) -> None:
    hosts = [provide(embedded, f"host {n}", VCPU=8, MEMORY_MB=8192) for n in range(3)]
    pool = provide(embedded, "pool", ["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=75)
    put_into_aggregate(embedded, pool, *hosts)
    room = read(embedded)
    assert room.more == 7  # 75 / 10, though each host alone takes 8 / 2 = 4
    assert {name: host.more for name, host in room.hosts.items()} == dict.fromkeys(
        ("host 0", "host 1", "host 2"), 4
    )


def test_a_limit_of_a_single_claim_is_no_limit_of_all_claims(embedded: PlacementClient) -> None:
    provide(embedded, "small claims", max_unit=1024, VCPU=64, MEMORY_MB=8192, DISK_GB=1000)
    provide(embedded, "none", max_unit=1000, VCPU=64, MEMORY_MB=8192, DISK_GB=1000)
    room = read(embedded)
    assert {name: (host.more, host.limited_by) for name, host in room.hosts.items()} == {
        "none": (0, "MEMORY_MB max_unit 1000"),  # though 8192 MB are free
        "small claims": (8, "MEMORY_MB"),
    }


def test_hosts_without_room_name_the_lacking_resources(embedded: PlacementClient) -> None:
    provide(embedded, "full", ["COMPUTE_NODE"], VCPU=1, MEMORY_MB=8192, DISK_GB=1000)
    provide(
        embedded,
        "off",
        ["COMPUTE_NODE", "COMPUTE_STATUS_DISABLED"],
        VCPU=9,
        MEMORY_MB=8192,
        DISK_GB=1000,
    )
    provide(embedded, "network", IPV4_ADDRESS=9)
    room = read(embedded)
    assert {name: host.limited_by for name, host in room.hosts.items()} == {
        "full": "VCPU",
        "off": "!COMPUTE_STATUS_DISABLED",
    }
