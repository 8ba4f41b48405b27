"""Small random clouds of which a test can try all plans."""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from cpu_tiers.tools.plan.hosts import Hosts, Server
from tests.unit.cloud_model.clouds import provider
from tests.unit.plan.clouds import hosts_of, server

MOST = 4
"""Brute force tries up to so many moves."""

Places = Mapping[str, str]
"""The host of each server."""


class SmallCloud:
    """Hosts with VCPU and memory, and servers, some of them in an anti-affinity group.

    :param counts: numbers of hosts, of which one is drawn.
    :param most: the most servers.
    :param largest: the most CPUs, and the most memory, of a host.
    :param is_over: whether the first host lost a CPU or two after the servers came.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        counts: Sequence[int] = (2, 3),
        most: int = 6,
        largest: int = 9,
        is_over: bool = False,
    ) -> None:
        count = rng.choice(counts)
        self.totals = {
            f"h{n}": (rng.randint(4, largest), rng.randint(4, largest)) for n in range(count)
        }
        free = {name: list(total) for name, total in self.totals.items()}
        self.servers: dict[str, Server] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        for _ in range(rng.randint(2, most)):
            host, size = rng.choice(list(free)), (rng.randint(1, 4), rng.randint(1, 4))
            uuid = f"s{len(self.servers)}"
            apart = ("g",) if rng.random() < 0.3 else ()
            is_alone = not any(s.apart and s.host == host for s in self.servers.values())
            if all(map(int.__ge__, free[host], size)) and (not apart or is_alone):
                free[host] = [a - b for a, b in zip(free[host], size, strict=True)]
                new = server(uuid, host, VCPU=size[0], MEMORY_MB=size[1])
                stays = "locked" if rng.random() < 0.1 else ""
                self.servers[uuid] = replace(new, apart=apart, stays=stays)
                self.sizes[uuid] = size
        if is_over:
            cpus, memory = self.totals["h0"]
            self.totals["h0"] = max(1, cpus - free["h0"][0] - rng.randint(1, 2)), memory

    def hosts(self, closed: frozenset[str] = frozenset()) -> Hosts:
        providers = [
            provider(name, None, VCPU=cpus, MEMORY_MB=memory)
            for name, (cpus, memory) in self.totals.items()
        ]
        return hosts_of(providers, self.servers.values(), {"g": 1}, closed=closed)

    def free(self, places: Places) -> dict[str, tuple[int, ...]]:
        free = {name: list(total) for name, total in self.totals.items()}
        for uuid, host in places.items():
            free[host] = [a - b for a, b in zip(free[host], self.sizes[uuid], strict=True)]
        return {name: tuple(amounts) for name, amounts in free.items()}

    def fewest(
        self, is_done: Callable[[Places], bool], closed: frozenset[str] = frozenset()
    ) -> int | None:
        """Return the fewest moves after which a condition holds; ``None`` for none up to MOST."""
        for number, states in enumerate(self.reached(MOST, closed)):
            if any(map(is_done, states)):
                return number
        return None

    def reached(
        self, most: int, closed: frozenset[str] = frozenset()
    ) -> Iterator[Sequence[Places]]:
        """Yield the hosts of all servers after 0, 1, … moves, each in all ways."""
        states = {tuple(sorted((uuid, s.host) for uuid, s in self.servers.items()))}
        for _ in range(most + 1):
            yield [dict(state) for state in states]
            following = set()
            for places in map(dict, states):
                free = self.free(places)
                for uuid, goal in itertools.product(places, self.totals):
                    if goal not in closed and self.may_move(uuid, goal, places, free):
                        following.add(tuple(sorted({**places, uuid: goal}.items())))
            states = following

    def may_move(
        self, uuid: str, goal: str, places: Places, free: Mapping[str, tuple[int, ...]]
    ) -> bool:
        mine = self.servers[uuid]
        return (
            goal != places[uuid]
            and not mine.stays
            and all(map(int.__ge__, free[goal], self.sizes[uuid]))
            and not (
                mine.apart and any(self.servers[o].apart for o in places if places[o] == goal)
            )
        )
