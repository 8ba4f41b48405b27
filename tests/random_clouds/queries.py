"""Compares the answers of a real Placement to both forms of a query with the brute force."""

import random
from collections import Counter
from collections.abc import Iterable

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.port import Port
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.numa import cheaper
from tests.random_clouds.brute_force import Placement, in_placement
from tests.random_clouds.drawing import (
    MOST_COMBINATIONS,
    combinations,
    draw_hosts,
    draw_server,
)
from tests.random_clouds.hosts import Host, Server
from tests.random_clouds.providers import Providers, port_request

SERVERS = 6
"""So many servers are drawn for each cloud."""


def check_forms(client: PlacementClient, seed: str) -> Counter[str]:
    """Draw a cloud and servers, and compare; return how many queries and placements there were."""
    rng = random.Random(seed)  # not for secrets
    hosts = draw_hosts(rng, "cn")
    providers = Providers(hosts)
    counts: Counter[str] = Counter(hosts=len(hosts))
    for _ in range(SERVERS):
        counts += check_server(client, hosts, draw_server(rng, hosts), providers)
    return counts


def check_server(
    client: PlacementClient, hosts: list[Host], server: Server, providers: Providers
) -> Counter[str]:
    """Compare the answers for a server with the brute force; return the numbers of both."""
    right = {way for host in hosts for way in in_placement(host, server)}
    request = request_of(server)
    queries = [query for query in (translate(request), fallback(request)) if query]
    forms = {"fast": [cheaper(query) for query in queries]}
    # The spec's form has another group for each NUMA node.
    if combinations(hosts, server, groups=2) <= MOST_COMBINATIONS:
        forms["spec"] = queries
    for form, asked in forms.items():
        answers = [client.candidates(query) for query in asked]
        found = list(_placements(hosts, server, answers, providers))
        assert_same(set(found), right, f"{form}: {server}")
        assert len(found) == len(set(found)), f"{form}: a placement twice for {server}"
    return Counter(
        {"servers": 1, "placements": len(right), "with a placement": bool(right)}
        | dict.fromkeys(forms, 1)
    )


def assert_same(found: set[Placement], right: set[Placement], what: str) -> None:
    """Check that no placement is missed, and that no other placement is there."""
    missed, infeasible = sorted(right - found), sorted(found - right)
    assert not missed, f"missed {missed[:5]} for {what}"
    assert not infeasible, f"infeasible {infeasible[:5]} for {what}"


def request_of(server: Server) -> ServerRequest:
    """Return the request of the library for a server, without the devices of aliases."""
    flavor = Flavor(
        name="f",
        vcpus=sum(node.shared + node.dedicated for node in server.nodes),
        memory_mb=sum(node.memory_mb for node in server.nodes),
        root_gb=server.disk_gb,
        extra_specs=server.extra_specs(),
    )
    ports = tuple(Port(id=port.id, resource_request=port_request(port)) for port in server.ports)
    return ServerRequest(flavor=flavor, ports=ports, query_numa=True)


def _placements(
    hosts: list[Host], server: Server, answers: Iterable[CandidatesAnswer], providers: Providers
) -> Iterable[Placement]:
    names = {host.uuid: host.name for host in hosts}
    suffixes = [port.id for port in server.ports]
    for answer in answers:
        for candidate in answer.usable().allocation_requests:
            provider = next(iter(candidate.allocations))
            root = names[answer.provider_summaries[provider]["root_provider_uuid"]]
            yield providers.placement_of(root, candidate.mappings, suffixes)
