"""A real Placement accepts each step of a plan, in its order, on random clouds."""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.cloud import Allocations
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.order import PlanStep
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.survive import make_survive
from cpu_tiers.tools.room.free import amounts_of
from cpu_tiers.tools.room.server_queries import Request
from tests import driver_operations, made_once
from tests.draws import clouds, repeatable
from tests.random_clouds.states import CLASSES, TRAITS, draw_state, likely_query, write_state

SERVERS = 8
KINDS = ("drain", "room", "relieve", "survive")


def test_placement_accepts_each_step(embedded: PlacementClient) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    embedded.ensure_names(classes=[CLASSES[-1]], traits=[*custom, "CUSTOM_GREEN"])
    empty, steps = made_once.copy_of_placement(), Counter[str]()
    for number in clouds(300):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            rng = random.Random(seed)
            kind = KINDS[number % len(KINDS)]
            steps[kind] += len(RandomCloud(embedded, rng).carried_out(kind))
    assert sum(steps.values()) > 0, steps


class RandomCloud:
    """A random cloud in Placement and in memory, with servers, some of them in a group."""

    def __init__(self, client: PlacementClient, rng: random.Random) -> None:
        self.client, self.rng = client, rng
        self.states = draw_state(rng)
        write_state(self.states)
        self.cloud = SimulatedCloud(self.states)
        self.queries = [likely_query(rng, self.states, self.cloud) for _ in range(3)]
        self.servers: list[Server] = []
        self.allocations: list[Allocations] = []
        self.effect: Callable[[], bool] = lambda: True
        for number in range(SERVERS):
            self._boot(f"s{number}", rng.choice(self.queries))

    def _boot(self, name: str, query: CandidateQuery) -> None:
        requests = self.cloud.candidates(query).allocation_requests
        if not requests:
            return
        request = self.rng.choice(requests)
        server_id = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        self.cloud.claim(request.allocations)
        self.allocations.append(request.allocations)
        allocations.claim(self.client, server_id, request, project_id="p", user_id="u")
        roots = {self.cloud.root_of(provider) for provider in request.allocations}
        names = {host.root for host in self.cloud.hosts if host.is_host}
        on = [root for root in roots if root is not None and root in names]
        if len(on) != 1:
            return
        is_alone = not any(server.apart and server.host == on[0] for server in self.servers)
        server = Server(
            uuid=server_id,
            name=name,
            host=on[0],
            amounts=amounts_of(request.allocations),
            request=Request((query,)),
            apart=("g",) if is_alone and self.rng.random() < 0.5 else (),
        )
        self.servers.append(server)

    def hosts(self, *closed: str) -> Hosts:
        return Hosts(
            cloud=self.cloud,
            servers=self.servers,
            groups={"g": 1},
            closed=frozenset(closed),
        )

    def carried_out(self, kind: str) -> tuple[PlanStep, ...]:
        """Carry a plan of a kind out, look for its effect, and return the steps."""
        if not self.servers:
            return ()
        plan: Plan = getattr(self, f"_{kind}")()
        at = {server.uuid: server.host for server in self.servers}
        for step in plan.steps:
            self._keeps_groups(step, at)
            migrate(self.client, step)
        assert self.effect()
        return plan.steps

    def _keeps_groups(self, step: PlanStep, at: dict[str, str]) -> None:
        apart = {server.uuid for server in self.servers if server.apart}
        if step.move.server.apart:
            assert step.move.host not in [host for uuid, host in at.items() if uuid in apart]
        at[step.move.server.uuid] = step.move.host

    def _drain(self) -> Plan:
        drained = self.rng.choice(self.servers).host
        leaving = frozenset(each.uuid for each in self.servers if each.host == drained)
        hosts = self.hosts(drained)
        own = [uuid for uuid, _ in hosts.rows_of(drained)]
        plan = make_plan(hosts, Question(leaving=leaving), seconds=2)
        if not plan.undone:
            self.effect = lambda: (
                not any(
                    leaving & {str(consumer) for consumer in self.client.allocations(uuid)}
                    for uuid in own
                )
            )
        return plan

    def _room(self) -> Plan:
        query = max(self.queries, key=lambda each: sum(each.resources().values()))
        question = Question(room=Request((query,)), wanted=1 + self.rng.randrange(3))
        plan = make_plan(self.hosts(), question, seconds=2)
        if plan.steps and plan.after:
            self.effect = lambda: bool(self.client.candidates(query).allocation_requests)
        return plan

    def _relieve(self) -> Plan:
        (uuid, name), amount = self.rng.choice(self.rng.choice(self.servers).amounts)
        # The provider shrinks to what all consumers but a server have.
        before = next(state for state in self.states if state.uuid == uuid)
        used = self._used(before)[name]
        smaller = replace(
            before.inventories[name],
            total=max(1, used - amount),
            reserved=0,
            allocation_ratio=1.0,
        )
        inventories = self.client.inventories(uuid)
        shrunk = replace(inventories, by_class={**inventories.by_class, name: smaller})
        self.client.set_inventories(uuid, shrunk)
        after = replace(before, inventories={**before.inventories, name: smaller})
        states = [after if state.uuid == uuid else state for state in self.states]
        self.cloud = SimulatedCloud(replace(state, used=self._used(state)) for state in states)
        row = uuid, name
        plan = make_plan(self.hosts(), Question(mends=frozenset([row])), seconds=2)
        if not plan.hosts.over([row]):
            self.effect = lambda: self.client.usages(uuid)[name] <= smaller.capacity
        return plan

    def _used(self, state: CloudProvider) -> Counter[str]:
        """Return what all consumers have of a provider."""
        used = Counter(state.used)
        for allocation in self.allocations:
            used.update(allocation.get(state.uuid, {}))
        return used

    def _survive(self) -> Plan:
        hosts = self.hosts()
        sets = [[root] for root in hosts.names]
        return make_survive(hosts, sets, Question(), Plan(hosts), seconds=2).plan


def migrate(client: PlacementClient, step: PlanStep) -> None:
    """Migrate as Nova does: the migration gets the source, and the server amounts the target."""
    server, migration = step.move.server.uuid, str(uuid.uuid4())
    amounts: dict[str, dict[str, int]] = {}
    for (provider, name), amount in step.move.amounts:
        amounts.setdefault(provider, {})[name] = amount
    driver_operations.move(client, server, migration)
    request = AllocationRequest(allocations=amounts, mappings={})
    allocations.claim(client, server, request, project_id="p", user_id="u")
    assert driver_operations.delete(client, migration)
