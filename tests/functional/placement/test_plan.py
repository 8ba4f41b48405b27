"""A real Placement accepts each step of a plan, in its order, on random clouds."""

import random
import uuid

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.plan.hosts import Hosts, Server, claims_of, kind_of
from cpu_tiers.tools.plan.order import PlanStep
from cpu_tiers.tools.plan.planner import Question, make_plan
from cpu_tiers.tools.simulation import SimulatedCloud
from cpu_tiers.tools.simulation.reasons import hosts_of
from tests import made_once
from tests.draws import clouds, repeatable
from tests.random_clouds.states import CLASSES, TRAITS, draw_state, likely_query, write_state

SERVERS = 8


def test_placement_accepts_each_step(embedded: PlacementClient) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    embedded.ensure_names(classes=[CLASSES[-1]], traits=[*custom, "CUSTOM_GREEN"])
    empty, steps = made_once.copy_of_placement(), 0
    for number in clouds(40):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            steps += carried_out(embedded, random.Random(seed))
    assert steps > 0


def carried_out(client: PlacementClient, rng: random.Random) -> int:
    """Fill a random cloud with servers, and carry plans out; return the number of steps."""
    states = draw_state(rng)
    write_state(states)
    cloud = SimulatedCloud(states)
    queries = [likely_query(rng, states, cloud) for _ in range(3)]
    servers = []
    for number in range(SERVERS):
        query = rng.choice(queries)
        requests = cloud.candidates(query).allocation_requests
        if not requests:
            continue
        request = rng.choice(requests)
        server = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        cloud.claim(request.allocations)
        allocations.claim(client, server, request, project_id="p", user_id="u")
        roots = {cloud.root_of(provider) for provider in request.allocations}
        names = hosts_of(cloud)
        hosts = [root for root in roots if root is not None and root in names]
        if len(hosts) == 1:
            servers.append(
                Server(
                    uuid=server,
                    name=f"s{number}",
                    host=hosts[0],
                    claims=claims_of(request.allocations),
                    queries=(query,),
                    kind=kind_of([query]),
                )
            )
    if not servers:
        return 0
    drained = rng.choice(servers).host
    hosts_now = Hosts(cloud=cloud, servers=servers, closed=frozenset({drained}))
    leaving = frozenset(each.uuid for each in servers if each.host == drained)
    plan = make_plan(hosts_now, Question(leaving=leaving), seconds=2)
    for step in plan.steps:
        migrate(client, step)
    return len(plan.steps)


def migrate(client: PlacementClient, step: PlanStep) -> None:
    """Migrate as Nova does: the migration gets the source, and the server claims the target."""
    server, migration = step.move.server.uuid, str(uuid.uuid4())
    amounts: dict[str, dict[str, int]] = {}
    for (provider, name), amount in step.move.claims:
        amounts.setdefault(provider, {})[name] = amount
    allocations.move(client, server, migration)
    request = AllocationRequest(allocations=amounts, mappings={})
    allocations.claim(client, server, request, project_id="p", user_id="u")
    assert allocations.delete(client, migration)
