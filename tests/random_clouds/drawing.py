"""Random hosts and servers."""

import random
import uuid
from collections.abc import Callable

from tests.random_clouds.brute_force import in_placement
from tests.random_clouds.hosts import Cell, Device, Host, Node, Port, Server

BASE, LARGE, HUGE = 4, 2048, 1048576
MOST_COMBINATIONS = 3_000
"""Placement tries each combination of providers; larger numbers take seconds."""

POLICIES = (None, None, "required", "preferred", "legacy", "socket")


def draw_hosts(rng: random.Random, prefix: str) -> list[Host]:
    """Return 1 to 3 hosts, of 1 to 8 NUMA cells each."""
    return [_host(rng, f"{prefix}-{number}") for number in range(rng.choice([1, 1, 2, 3]))]


def _host(rng: random.Random, name: str) -> Host:
    count = rng.choice([1, 2, 2, 2, 3, 4, 4, 6, 8])
    ids = sorted(rng.sample(range(2 * count), count))
    threads = rng.choice([1, 1, 2])
    kind = rng.choice(["dedicated", "dedicated", "dedicated", "any CPU", "shared"])
    cells = tuple(_cell(rng, number, i, threads, kind) for i, number in enumerate(ids))
    if not any(cell.cores for cell in cells) or not any(cell.memory_mb for cell in cells):
        return _host(rng, name)
    pcpu = kind == "dedicated" and any(cell.dedicated for cell in cells)
    if kind == "dedicated" and not pcpu:
        return _host(rng, name)
    host = Host(
        name=name,
        reports=rng.choice([True, True, True, True, None, False]),
        pcpu=pcpu,
        shared_set=kind == "shared" or (pcpu and any(cell.shared for cell in cells)),
        cpu_ratio=rng.choice([1.0, 2.0]),
        ram_ratio=rng.choice([1.0, 1.0, 1.5]),
        disk_gb=rng.choice([0, 10]),
        cells=cells,
        ports={
            "direct": tuple(
                _function(rng, f"{name}:NIC Switch agent:ens{number}", ids)
                for number in range(rng.choice([0, 1, 2, 2, 3]))
            ),
            "normal": (_bridge(rng, f"{name}:Open vSwitch agent:br-0"),)
            if rng.random() < 0.6
            else (),
        },
        aliases=tuple(
            _card(rng, f"{name}_0000:{number + 1:02x}:00.0", ids)
            for number in range(rng.choice([0, 1, 2, 3]))
        ),
    )
    for cell in cells:
        _fill(rng, host, cell)
    return host


def _cell(rng: random.Random, number: int, place: int, threads: int, kind: str) -> Cell:
    """Return an empty cell; some cells have memory and no CPUs, or CPUs and no memory."""
    what = rng.choice(["both"] * 8 + ["memory", "CPUs"])
    cpus = (
        [] if what == "memory" else list(range(10 * place, 10 * place + rng.choice([2, 4, 6, 8])))
    )
    cores = tuple(tuple(cpus[i : i + threads]) for i in range(0, len(cpus), threads))
    dedicated = (
        frozenset(cpu for cpu in cpus if rng.random() < 0.6)
        if kind == "dedicated"
        else frozenset()
    )
    shared = frozenset(cpus) - dedicated
    pages = {BASE: 0}
    if what != "CPUs":
        pages = {BASE: rng.choice([0, 2, 4, 4, 8]) * 1024 * 1024 // BASE}
        if rng.random() < 0.6:
            pages[LARGE] = rng.choice([128, 512, 1024])
        if rng.random() < 0.3:
            pages[HUGE] = rng.choice([1, 2])
    return Cell(
        id=number,
        socket=place // 2 if cpus else None,
        cores=cores,
        shared=shared,
        dedicated=shared if kind == "any CPU" else dedicated,
        pages=pages,
        reserved={LARGE: rng.randint(0, 64)} if LARGE in pages and rng.random() < 0.2 else {},
    )


def _fill(rng: random.Random, host: Host, cell: Cell) -> None:
    """Give a part of a cell to servers that exist."""
    if rng.random() < 0.6:
        return
    room = int(len(cell.shared) * host.cpu_ratio)
    if cell.dedicated:
        pins = rng.randint(0, len(cell.dedicated))
        cell.pinned = set(rng.sample(sorted(cell.dedicated), pins))
        room -= 0 if host.pcpu else pins
    cell.vcpus = rng.randint(0, room)
    for size, count in cell.pages.items():
        step = 1024 * 1024 // BASE // 4 if size == BASE else 1
        free = (count - cell.reserved.get(size, 0)) // step
        cell.used[size] = rng.choice([0, rng.randint(0, max(free, 0))]) * step


def _function(rng: random.Random, provider: str, ids: list[int]) -> Device:
    total = rng.choice([1000, 3000])
    return Device(
        provider=provider,
        node=rng.choice([None, *ids, *ids]),
        total=total,
        taken=rng.choice([0, 0, total // 2]),
        functions=rng.choice([0, 1, 2, 8, 8]),
    )


def _bridge(rng: random.Random, provider: str) -> Device:
    return Device(
        provider=provider, node=None, total=3000, taken=rng.choice([0, 2500]), functions=0
    )


def _card(rng: random.Random, provider: str, ids: list[int]) -> Device:
    total = rng.choice([1, 1, 2])
    taken = rng.randint(0, total)
    return Device(
        provider=provider,
        node=rng.choice([None, *ids, *ids]),
        total=total,
        taken=taken,
        functions=total - taken,
    )


MOST_DRAWN = 50
"""So many servers are drawn for one of the wanted kind."""


def draw_server(
    rng: random.Random, hosts: list[Host], fits: Callable[[Server], bool] | None = None
) -> Server:
    """Return a server for which Placement does not try too many combinations.

    Most servers fit somewhere: a server is drawn anew some times if no host has room.

    :param fits: tells whether a host has room; by default, whether Placement finds room.
    """

    def in_some_host(server: Server) -> bool:
        return any(in_placement(host, server, as_vcpu=True) for host in hosts)

    # Servers of one node without devices fit more often, and would be most of all.
    is_wanted = rng.choice([lambda _: True, _has_several_nodes, _has_devices, _has_direct_ports])
    for _ in range(rng.choice([1, 6, 6]) * (5 if fits else 1)):
        drawn = 0
        server = _server(rng)
        # In a large cloud, no server with several nodes and devices may be simple enough.
        while (not is_wanted(server) and drawn < MOST_DRAWN) or (
            combinations(hosts, server) > MOST_COMBINATIONS
        ):
            server = _server(rng)
            drawn += 1
        if (fits or in_some_host)(server):
            break
    return server


def _has_several_nodes(server: Server) -> bool:
    return len(server.nodes) > 1


def _has_devices(server: Server) -> bool:
    return bool(server.devices)


def _has_direct_ports(server: Server) -> bool:
    return any(port.kind == "direct" for port in server.ports)


def combinations(hosts: list[Host], server: Server, *, groups: int = 1) -> int:
    """Return the most combinations of providers of a host.

    :param groups: the number of request groups for each NUMA node, without the memory.
    """

    def of_host(host: Host) -> int:
        nodes = len(server.nodes) if server.topology and host.reports else 0
        pages = sum(len(cell.pages) for cell in host.cells)
        number: int = (len(host.cells) ** groups * pages) ** nodes
        for port in server.ports:
            number *= max(1, len(host.ports[port.kind]))
        devices: int = max(1, len(host.aliases)) ** server.devices
        return number * devices

    return max(map(of_host, hosts))


def _server(rng: random.Random) -> Server:
    topology = rng.random() < 0.9
    policy = rng.choice(["shared", "dedicated", "dedicated", "mixed"]) if topology else "shared"
    count = rng.choice([1, 1, 1, 2, 2, 3]) if topology else 1
    pages = rng.choice([None, None, "small", "large", "any", LARGE, HUGE]) if topology else None
    memory = [1024, 2048] if pages == HUGE else [256, 512, 512, 1024, 2048]
    return Server(
        nodes=tuple(_node(rng, policy, rng.choice(memory)) for _ in range(count)),
        topology=topology,
        pages=pages,
        isolate=policy in ("dedicated", "mixed") and rng.random() < 0.3,
        disk_gb=rng.choice([0, 0, 1]),
        ports=tuple(
            Port(
                id=str(uuid.UUID(int=rng.getrandbits(128))),
                kind=rng.choice(["direct", "direct", "normal"]),
                kbps=rng.choice([300, 600, 1500]),
                policy=rng.choice(POLICIES) if rng.random() < 0.3 else None,
            )
            for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))
        ),
        devices=rng.choice([0, 0, 0, 0, 1, 2]),
        policy=rng.choice(POLICIES),
    )


def _node(rng: random.Random, policy: str, memory_mb: int) -> Node:
    shared = 0 if policy == "dedicated" else rng.choice([1, 2, 3])
    dedicated = 0 if policy == "shared" else rng.choice([1, 1, 2, 3])
    return Node(shared=shared, dedicated=dedicated, memory_mb=memory_mb)
