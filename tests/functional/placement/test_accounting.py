"""Lives of many servers, at random, on a real Placement that loses answers.

In the end, and on the way, each provider is used by exactly what the servers
and ports that are alive ask of it. What they ask for is kept beside, in plain
sums that know nothing of Placement.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.port import Port
from cpu_tiers.tools.accounting.port_bindings import PortBinding, bind
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.allocations import claim, release
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.exchange import Transport
from tests.draws import SEED, part
from tests.driver_operations import add_portion, delete, move, roll_back
from tests.functional.placement.networks import add_host, ask, port, uuid, vf

# Each takes 50 to 100 ms; while you work on it, CPU_TIERS_OPERATIONS=100 tox -e functional -- …
OPERATIONS = int(os.environ.get("CPU_TIERS_OPERATIONS") or part(1000))
HOSTS = ("c1", "c2", "c3")


class Weather:
    """Placement's transport, where one write of ten or so goes wrong.

    Not twice in a row, as the attempts are limited; but each way on its own: what
    was sent is lost, or the answer to it, or somebody else writes the same
    consumer just before.
    """

    def __init__(self, transport: Transport, random: Random) -> None:
        self._transport = transport
        self._random = random
        self._fair = True
        self.seen = dict.fromkeys(("lost", "answer lost", "conflict"), 0)

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        def send() -> Any:
            return self._transport.request(url, method, **kwargs)

        if (method, url) != ("POST", "/allocations"):
            return send()
        self._fair = not self._fair or self._random.random() > 0.15
        if self._fair:
            return send()
        kind = self._random.choice(list(self.seen))
        self.seen[kind] += 1
        if kind == "conflict":
            for consumer in kwargs["json"]:
                self._write_again(consumer, kwargs)
            return send()
        if kind == "answer lost":
            send()
        raise ConnectFailure("connection reset")

    def _write_again(self, consumer: str, kwargs: dict[str, Any]) -> None:
        """Make a new generation of a consumer, with what it holds."""
        more = {name: value for name, value in kwargs.items() if name != "json"}
        held = self._transport.request(f"/allocations/{consumer}", "GET", **more).json()
        if held["allocations"]:
            for allocation in held["allocations"].values():
                del allocation["generation"]
            answer = self._transport.request(f"/allocations/{consumer}", "PUT", **more, json=held)
            assert answer.status_code == 204


@dataclass
class Server:
    """A server that is alive.

    :param host: the uuid of its root provider.
    :param migration: the consumer that holds what it had on the source, if any.
    """

    uuid: str
    host: str
    bindings: dict[str, PortBinding]
    migration: str = ""
    source: "Server | None" = None


@dataclass
class Cloud:
    """The servers, and what is done to them."""

    client: PlacementClient
    random: Random
    hosts: list[str]
    servers: list[Server] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)

    def new_uuid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def new_port(self) -> Port:
        name, amount = self.new_uuid(), self.random.randint(1, 12) * 100
        kind = self.random.choice((port, vf, grouped))
        return kind(name, amount)

    def live(self, *, migrating: bool = False) -> Server | None:
        """Return a server that is on the move, or one that is not."""
        fit = [server for server in self.servers if bool(server.migration) == migrating]
        return self.random.choice(fit) if fit else None

    def place(self, server: str, ports: tuple[Port, ...]) -> Server | None:
        """Claim somewhere; None where there is no room."""
        candidates = ask(self.client, *ports)
        if not candidates.allocation_requests:
            return None
        chosen = self.random.choice(candidates.allocation_requests)
        claim(self.client, server, chosen, project_id="p", user_id="u")
        host = next(uuid for uuid in chosen.allocations if uuid in self.hosts)
        return Server(uuid=server, host=host, bindings=bind(ports, chosen))

    def create(self) -> bool:
        ports = tuple(self.new_port() for _ in range(self.random.randint(0, 3)))
        server = self.place(self.new_uuid(), ports)
        if server is not None:
            self.servers.append(server)
        return server is not None

    def delete(self) -> bool:
        server = self.random.choice(self.servers) if self.servers else None
        if server is None:
            return False
        for consumer in filter(None, (server.uuid, server.migration)):
            assert delete(self.client, consumer)
        self.servers.remove(server)
        return True

    def attach(self) -> bool:
        server, new = self.live(), self.new_port()
        if server is None:
            return False
        ways = ask(self.client, new).by_host().get(server.host, [])
        if not ways:
            return False
        (binding,) = bind([new], self.random.choice(ways)).values()
        add_portion(self.client, server.uuid, binding.portion)
        server.bindings[new.id] = binding
        return True

    def detach(self) -> bool:
        server = self.live()
        if server is None or not server.bindings:
            return False
        binding = server.bindings.pop(self.random.choice(sorted(server.bindings)))
        release(self.client, server.uuid, binding.portion)
        return True

    def migrate(self) -> bool:
        server = self.live()
        if server is None:
            return False
        migration = self.new_uuid()
        move(self.client, server.uuid, migration)
        there = self.place(server.uuid, tuple(one.port for one in server.bindings.values()))
        if there is None:
            roll_back(self.client, server.uuid, migration)
            return False
        self.servers.remove(server)
        there.migration, there.source = migration, server
        self.servers.append(there)
        return True

    def confirm(self) -> bool:
        server = self.live(migrating=True)
        if server is None:
            return False
        delete(self.client, server.migration)
        server.migration, server.source = "", None
        return True

    def revert(self) -> bool:
        server = self.live(migrating=True)
        if server is None or server.source is None:
            return False
        roll_back(self.client, server.uuid, server.migration)
        self.servers.remove(server)
        self.servers.append(server.source)
        return True

    def evacuate(self) -> bool:
        server = self.live()
        if server is None:
            return False
        ports = tuple(one.port for one in server.bindings.values())
        ways = [
            way
            for way in ask(self.client, *ports).allocation_requests
            if server.host not in way.allocations
        ]
        if not ways:
            return False
        chosen, held = self.random.choice(ways), self.client.consumer(server.uuid).allocations
        add_portion(self.client, server.uuid, Portion.by_id(chosen.allocations))
        release(self.client, server.uuid, held)
        server.host = next(uuid for uuid in chosen.allocations if uuid in self.hosts)
        server.bindings = bind(ports, chosen)
        return True

    def expected(self) -> dict[str, dict[str, int]]:
        """Return what must be used of each provider: all that lives, and what holds a source."""
        holders = [*self.servers, *(one.source for one in self.servers if one.source)]
        total: dict[str, dict[str, int]] = {}
        for holder in holders:
            parts = [(holder.host, {"VCPU": 1, "MEMORY_MB": 1})]
            parts += [part for one in holder.bindings.values() for part in asked(one)]
            for provider, amounts in parts:
                of_provider = total.setdefault(provider, {})
                for name, amount in amounts.items():
                    of_provider[name] = of_provider.get(name, 0) + amount
        return total

    def check(self) -> None:
        used = {one.uuid: self.client.usages(one.uuid) for one in self.client.providers()}
        some = {u: {n: a for n, a in amounts.items() if a} for u, amounts in used.items()}
        assert {u: amounts for u, amounts in some.items() if amounts} == self.expected()


def grouped(name: str, amount: int) -> Port:
    """A port with a group for bandwidth, and one for packets."""
    flat: Any = port(name, amount).resource_request
    pps = {"resources": {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 3}, "required": []}
    groups = [{"id": f"{name}-bw", **flat}, {"id": f"{name}-pps", **pps}]
    request = {"request_groups": groups, "same_subtree": [f"{name}-bw", f"{name}-pps"]}
    return Port(id=name, resource_request=request)


def asked(binding: PortBinding) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield what a port asks for as Neutron says it, and of whom."""
    request: Any = binding.port.resource_request
    if isinstance(binding.allocation, str):
        yield binding.allocation, request["resources"]
    else:
        for group in request["request_groups"]:
            yield binding.allocation[group["id"]], group["resources"]


def test_every_provider_is_used_by_living_consumers(embedded: PlacementClient) -> None:
    random = Random(SEED)
    for name in HOSTS:
        add_host(embedded, name)
    weather = Weather(embedded._exchange._transport, random)
    client = PlacementClient(weather, retry_policy=RetryPolicy(sleep=lambda _: None))
    cloud = Cloud(client, random, [uuid(embedded, name) for name in HOSTS])
    every: list[Callable[[], bool]] = [
        *[cloud.create] * 3,
        *[cloud.attach, cloud.detach, cloud.migrate] * 2,
        *[cloud.confirm, cloud.revert, cloud.evacuate, cloud.delete],
    ]
    for number in range(OPERATIONS):
        operation = random.choice(every)
        cloud.done[operation.__name__] = cloud.done.get(operation.__name__, 0) + operation()
        if number % 100 == 0:
            cloud.check()
    cloud.check()
    assert all(cloud.done.values()), cloud.done
    assert all(weather.seen.values()), weather.seen
    for server in cloud.servers:
        for consumer in filter(None, (server.uuid, server.migration)):
            delete(client, consumer)
    cloud.servers.clear()
    cloud.check()
