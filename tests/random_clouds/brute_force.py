"""Which placements of a server are right, by trying all of them.

It shares no code with cpu_tiers or Nova: it takes every choice of host cells, page sizes and
devices in turn, and counts what is free.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tests.random_clouds.hosts import Cell, Device, Host, Node, Server


class Placement(NamedTuple):
    """Where a server is.

    :param cells: the host cell and the page size in KiB of each node of the guest; empty on a
        host that does not report its NUMA nodes.
    :param devices: the provider of each port, and of each device of the alias, in any order.
    """

    host: str
    cells: tuple[tuple[int, int], ...]
    devices: tuple[str, ...]


def in_placement(
    host: Host, server: Server, *, aliases: bool = False, as_vcpu: bool = False
) -> set[Placement]:
    """Return the placements that are right by the amounts and traits that Placement knows.

    :param aliases: Placement knows the PCI devices of aliases.
    :param as_vcpu: dedicated vCPUs may be VCPU on a host that reports no PCPU.
    """
    if server.is_pinned and not as_vcpu and not host.pcpu:
        return set()
    if server.disk_gb > host.disk_gb or (
        host.reports is not None and host.reports != server.topology
    ):
        return set()
    cells = (
        set(_on_nodes(host, server)) if host.reports else _on_root(host, server, as_vcpu=as_vcpu)
    )
    return {
        Placement(host.name, way, tuple(device.provider for device in devices))
        for way in cells
        for devices in _devices(host, server, aliases=aliases)
    }


def on_hardware(host: Host, server: Server, *, aliases: bool) -> set[Placement]:
    """Return the placements on NUMA nodes that are right by the hardware of the host, too."""
    return {
        placement
        for placement in in_placement(host, server, aliases=aliases, as_vcpu=True)
        if _pins(host, server, placement.cells) and _near(host, server, placement, aliases=aliases)
    }


def cells_with_devices(host: Host, placement: Placement) -> int:
    """Return how many of the cells of a placement have a PCI device that no server has taken."""
    devices = (*host.ports["direct"], *host.aliases)
    cells = {device.node for device in devices if device.functions}
    return sum(cell in cells for cell, _ in placement.cells)


def take(host: Host, server: Server, placement: Placement) -> None:
    """Let a server take what it needs of a host."""
    cells = {cell.id: cell for cell in host.cells}
    for number, (node, (id_, size)) in enumerate(zip(server.nodes, placement.cells, strict=True)):
        cell, emulator = cells[id_], server.isolate and number == 0
        free = sorted(cell.dedicated - cell.pinned)
        cell.pinned |= set(free[: node.dedicated + emulator])
        cell.unsold += emulator and not host.pcpu
        cell.vcpus += node.shared
        cell.used[size] = cell.used.get(size, 0) + node.memory_mb * 1024 // size
    devices = {d.provider: d for group in (*host.ports.values(), host.aliases) for d in group}
    amounts = [*(port.kbps for port in server.ports), *([1] * server.devices)]
    for provider, amount in zip(placement.devices, amounts, strict=False):
        devices[provider].taken += amount
        devices[provider].functions -= 1
    host.disk_gb -= server.disk_gb


def fill(host: Host, cell_id: int) -> dict[str, int]:
    """Take all CPUs of a cell that Placement can sell, as a race does; return the amounts."""
    (cell,) = (cell for cell in host.cells if cell.id == cell_id)
    room = int(len(cell.shared) * host.cpu_ratio) - cell.vcpus
    if not host.pcpu:
        room -= len(cell.pinned) - cell.unsold
    cell.vcpus += room
    if not host.pcpu:
        return {"VCPU": room}
    pins = len(cell.dedicated) - len(cell.pinned)
    cell.pinned = set(cell.dedicated)
    return {"VCPU": room, "PCPU": pins}


def _on_nodes(host: Host, server: Server) -> Iterator[tuple[tuple[int, int], ...]]:
    for cells in itertools.permutations(host.cells, len(server.nodes)):
        sizes = [[size for size in cell.pages if _is_wanted(host, server, size)] for cell in cells]
        for chosen in itertools.product(*sizes):
            parts = zip(server.nodes, cells, chosen, range(len(cells)), strict=True)
            if all(_sold(host, server, *part) for part in parts):
                yield tuple((cell.id, size) for cell, size in zip(cells, chosen, strict=True))


def _is_wanted(host: Host, server: Server, size: int) -> bool:
    if server.pages in (None, "small"):
        return size == host.base_kb
    return server.pages == "any" or (
        size > host.base_kb if server.pages == "large" else size == server.pages
    )


def _sold(host: Host, server: Server, node: Node, cell: Cell, size: int, number: int) -> bool:
    """Tell whether Placement sells CPUs and pages of a host's cell to a node of the guest."""
    shared, dedicated = node.shared, node.dedicated + (server.isolate and number == 0)
    free = len(cell.dedicated) - len(cell.pinned)
    vcpus = cell.vcpus
    if not host.pcpu:  # dedicated vCPUs are VCPU; emulator threads are nothing
        if server.is_pinned and any(part.shared for part in server.nodes):
            return False  # mixed
        shared, dedicated, free = shared + node.dedicated, 0, 0
        vcpus += len(cell.pinned) - cell.unsold
    total = len(cell.shared)
    ratio = host.ram_ratio if size == host.base_kb else 1.0
    taken = cell.used.get(size, 0) * size // 1024 + node.memory_mb
    memory = cell.pages[size] * size // 1024
    return (
        dedicated <= free
        and (not shared or (shared <= total and vcpus + shared <= int(total * host.cpu_ratio)))
        and node.memory_mb <= memory
        and taken <= int((memory - cell.reserved.get(size, 0) * size // 1024) * ratio)
        and (size == host.base_kb or node.memory_mb * 1024 % size == 0)
    )


def _on_root(host: Host, server: Server, *, as_vcpu: bool) -> set[tuple[tuple[int, int], ...]]:
    """Return the only placement on a host that does not report its nodes, if there is room."""
    shared = sum(node.shared for node in server.nodes)
    dedicated = sum(node.dedicated for node in server.nodes) + server.isolate
    vcpus, pinned = sum(cell.vcpus for cell in host.cells), sum(len(c.pinned) for c in host.cells)
    free = sum(len(cell.dedicated) for cell in host.cells) - pinned
    if not host.pcpu:
        vcpus += pinned
        if server.is_pinned and shared:
            return set()
    capacity = sum(len(cell.shared) for cell in host.cells)
    memory = sum(cell.memory_mb for cell in host.cells)
    taken = sum(size * count for cell in host.cells for size, count in cell.used.items()) // 1024
    needed = sum(node.memory_mb for node in server.nodes)
    forms = [(shared, dedicated, free if host.pcpu else 0)]
    if as_vcpu and server.is_pinned and not shared:
        forms.append((sum(node.dedicated for node in server.nodes), 0, 0))
    fits = any(
        pins <= room
        and (not cpus or (cpus <= capacity and vcpus + cpus <= int(capacity * host.cpu_ratio)))
        for cpus, pins, room in forms
    )
    return (
        {()}
        if fits and needed <= memory and taken + needed <= int(memory * host.ram_ratio)
        else set()
    )


def _devices(host: Host, server: Server, *, aliases: bool) -> Iterator[Sequence[Device]]:
    """Yield each choice of devices that have the bandwidth, or the PCI devices, together."""
    choices = [host.ports[port.kind] for port in server.ports]
    amounts = [port.kbps for port in server.ports]
    if aliases:
        choices += [host.aliases] * server.devices
        amounts += [1] * server.devices
    for devices in itertools.product(*choices):
        needed: Counter[str] = Counter()
        for device, amount in zip(devices, amounts, strict=True):
            needed[device.provider] += amount
        if all(device.taken + needed[device.provider] <= device.total for device in devices):
            yield devices


def _pins(host: Host, server: Server, cells: Sequence[tuple[int, int]]) -> bool:
    """Tell whether the cells have the CPUs and the pages that Nova does not overcommit."""
    by_id = {cell.id: cell for cell in host.cells}
    for number, (node, (id_, size)) in enumerate(zip(server.nodes, cells, strict=True)):
        cell = by_id[id_]
        pins = node.dedicated + (server.isolate and number == 0)
        if server.is_pinned and pins > len(cell.dedicated - cell.pinned):
            return False
        free = cell.pages[size] - cell.used.get(size, 0) - cell.reserved.get(size, 0)
        if (server.is_pinned or server.pages) and node.memory_mb * 1024 > free * size:
            return False
    return True


def _near(host: Host, server: Server, placement: Placement, *, aliases: bool) -> bool:
    """Tell whether the devices have free functions within their NUMA affinity policies."""
    near = {cell for cell, _ in placement.cells}
    all_devices = {
        d.provider: d for devices in (*host.ports.values(), host.aliases) for d in devices
    }
    chosen = [all_devices[provider] for provider in placement.devices]
    claimed = Counter(device.provider for device in chosen)
    for port, device in zip(server.ports, chosen, strict=False):
        if port.kind == "direct":
            policy = port.policy or server.policy
            if claimed[device.provider] > device.functions:
                return False
            if not _is_allowed(host, policy, near, device):
                return False
    if not server.devices:
        return True
    allowed = _allowed(host, server, near)
    if aliases:
        return all(device in allowed for device in chosen[len(server.ports) :])
    return sum(device.functions for device in allowed) >= server.devices


def _allowed(host: Host, server: Server, near: Collection[int]) -> list[Device]:
    """Return the alias devices that Nova takes: near devices, if there are enough of them."""
    devices = [device for device in host.aliases if device.functions]
    for policy in ("required", "legacy"):
        allowed = [device for device in devices if _is_allowed(host, policy, near, device)]
        if sum(device.functions for device in allowed) >= server.devices:
            return allowed
        if server.policy == policy:
            return allowed
        if policy == "required" and server.policy == "socket":
            break
    return [device for device in devices if _is_allowed(host, server.policy, near, device)]


def _is_allowed(host: Host, policy: str | None, near: Collection[int], device: Device) -> bool:
    if device.node in near or policy == "preferred":
        return True
    if policy == "socket":
        sockets = {cell.id: cell.socket for cell in host.cells}
        # Nova knows no sockets if a single cell has none, such as a cell without CPUs.
        return (
            None not in sockets.values()
            and sockets.get(device.node or 0) in {sockets[cell] for cell in near}
            and device.node is not None
        )
    return policy in (None, "legacy") and device.node is None
