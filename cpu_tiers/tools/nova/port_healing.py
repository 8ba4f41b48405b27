"""Allocate in place the resources that ports of existing servers request.

Spec: bandwidth-resource-provider, "Upgrade impact". Placement is written first and Neutron's ports
afterwards, so no port uses what is not allocated. If the write to Neutron fails, the next run
finds the allocation that is left, see :mod:`~cpu_tiers.tools.accounting.port_bindings`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import Portion, ProviderId, sum_portions
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.errors import CpuTiersError, InvalidInput
from cpu_tiers.extra_specs.groups import GROUP_POLICY
from cpu_tiers.model.inventory import limit_of
from cpu_tiers.model.port import Port
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree
from cpu_tiers.placement.errors import DataChanged, InsufficientCapacity, UnknownNames
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.accounting import port_bindings
from cpu_tiers.tools.accounting.port_bindings import PortBinding, PortShortfall
from cpu_tiers.tools.placement.allocations import release
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import set_consumers, with_fresh_reads, write_again
from cpu_tiers.translators import ServerRequest, bandwidth


class PortGone(CpuTiersError):
    """Neutron does not know the port any more."""


class PortNotRecorded(CpuTiersError):
    """Neutron did not accept the new profile of the port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPorts:
    """A server, and its ports as Neutron has them now.

    :param interfaces: of ports with a PCI device, by the id of the port, as far as they are known.
    :param will_hold: the server holds nothing, and all of its allocations are about to be written.
    """

    owner: Owner
    ports: tuple[Port, ...]
    interfaces: Mapping[str, str] = field(default_factory=dict)
    will_hold: bool = False


Record = Callable[[PortBinding], None]
"""Writes ``allocation`` into the profile of a port.

:raises PortGone: there is no such port.
:raises PortNotRecorded: it was not written.
"""

Read = Callable[[], ServerPorts | None]
"""Reads a server and its ports; ``None`` if the server is not to be healed here any more."""


def read_tree(client: PlacementClient, root: ProviderId) -> ProviderIndex:
    """Return the providers of a host with their traits, by the uuid of the root provider."""
    return ProviderIndex(
        replace(provider, traits=client.traits(provider.uuid).names)
        for provider in client.providers_in_tree(root)
    )


def plan_ports(
    client: PlacementClient, tree: ProviderIndex, server: ServerPorts, pending: Portion[ProviderId]
) -> tuple[PortShortfall, ...]:
    """Return the shortfalls of a server's ports, and the providers that could serve them in place.

    A server is healed whole or not at all: if one of its ports cannot be served
    here, the server must move, and the move allocates for all ports.

    :param pending: the amounts that other servers are going to get before.
    """
    return _Plan(client, tree, server, client.consumer(server.owner.server)).shortfalls(pending)


def heal_ports(
    client: PlacementClient, tree: ProviderIndex, read: Read, record: Record
) -> tuple[PortShortfall, ...]:
    """Allocate the shortfalls of :func:`plan_ports`, and write the profiles of the ports.

    If a profile cannot be written, the ``limit`` of the shortfall tells the reason.

    :return: the shortfalls.
    :raises GenerationConflict: others wrote the server's allocations in between, at each attempt.
    """

    def attempt() -> tuple[str, tuple[PortShortfall, ...]]:
        server = read()
        if server is None:
            return "", ()
        present = client.consumer(server.owner.server)
        shortfalls = _Plan(client, tree, server, present).shortfalls(Portion())
        if not is_limited(shortfalls):
            shortfalls = _allocate(client, present, shortfalls)
        return present.uuid, shortfalls

    consumer, shortfalls = with_fresh_reads(client.retry_policy, attempt)
    if is_limited(shortfalls):
        return shortfalls
    return tuple(_recorded(client, consumer, shortfall, record) for shortfall in shortfalls)


def is_limited(shortfalls: Iterable[PortShortfall]) -> bool:
    """Tell whether a port of a server cannot be healed here."""
    return any(shortfall.limit for shortfall in shortfalls)


def _allocate(
    client: PlacementClient, present: Consumer, shortfalls: tuple[PortShortfall, ...]
) -> tuple[PortShortfall, ...]:
    lacks = sum_portions(shortfall.lacks for shortfall in shortfalls)
    if not lacks:
        return shortfalls
    wanted = replace(present, allocations=present.allocations + lacks)

    def write(generation: int | None) -> None:
        set_consumers(client, (present, replace(wanted, generation=generation)))

    def read() -> int | None:
        now = client.consumer(present.uuid)
        if now.allocations != present.allocations:
            raise DataChanged(f"server {present.uuid} was given other allocations just now")
        return now.generation

    try:
        write_again(client.retry_policy, write, present.generation, read)
    except InsufficientCapacity:
        limit = "somebody took the room just now"
        return tuple(replace(shortfall, limit=limit) for shortfall in shortfalls)
    return shortfalls


def _recorded(
    client: PlacementClient, consumer: str, shortfall: PortShortfall, record: Record
) -> PortShortfall:
    if shortfall.recorded or shortfall.binding is None:
        return shortfall
    try:
        record(shortfall.binding)
    except PortGone:
        release(client, consumer, shortfall.lacks)
        return replace(shortfall, limit="it is gone by now", advice="what it was given is freed")
    except PortNotRecorded as error:
        limit = f"Placement has its part, but Neutron did not take note: {error}"
        return replace(shortfall, limit=limit, advice="run the command again")
    return shortfall


@dataclass(frozen=True, slots=True)
class _Plan:
    """Finds the providers for the ports of a server, by the allocations that the server has."""

    client: PlacementClient
    tree: ProviderIndex
    server: ServerPorts
    present: Consumer

    def shortfalls(self, pending: Portion[ProviderId]) -> tuple[PortShortfall, ...]:
        """Return what :func:`plan_ports` returns."""
        server, held = self.server, self.present.allocations
        shortfalls = port_bindings.find_port_shortfalls(
            server.ports, held, self.tree, server.interfaces, _flavor_amounts(server.owner)
        )
        if not held and not server.will_hold:
            return tuple(
                replace(
                    shortfall,
                    limit="the server holds no allocation at all",
                    advice="heal that first: this command does where the host reports shares or"
                    " its NUMA nodes, else nova-manage placement heal_allocations",
                )
                for shortfall in shortfalls
            )
        unserved = [each.port for each in shortfalls if each.binding is None and not each.limit]
        served = self._served(unserved) if unserved else {}
        shortfalls = tuple(served.get(shortfall.port.id, shortfall) for shortfall in shortfalls)
        if not is_limited(shortfalls):
            limit = self._limit(sum_portions(each.lacks for each in shortfalls), pending)
            shortfalls = tuple(
                replace(each, limit=limit) if each.lacks else each for each in shortfalls
            )
        if not is_limited(shortfalls):
            return shortfalls
        limit = "another port of the server cannot be served here"
        return tuple(replace(each, limit=each.limit or limit) for each in shortfalls)

    def _served(self, ports: Sequence[Port]) -> dict[str, PortShortfall]:
        limit = "no device of the host fits, or none has room for all that the server lacks"
        ways: list[dict[str, PortBinding]] = []
        try:
            ways = self._ways(ports)
        except InvalidInput as error:
            limit = port_bindings.one_line(error)
        if not ways:
            return {port.id: PortShortfall(port=port, limit=limit) for port in ports}
        served = {}
        for port in ports:
            first, *others = bindings = [way[port.id] for way in ways]
            if any(binding.providers != first.providers for binding in others):
                limit = port_bindings.several(bindings, self.tree)
                served[port.id] = PortShortfall(port=port, limit=limit)
            else:
                served[port.id] = PortShortfall(port=port, binding=first, lacks=first.portion)
        return served

    def _ways(self, ports: Sequence[Port]) -> list[dict[str, PortBinding]]:
        query = self._query(ports)
        if not query.resources():
            return []
        try:
            answer = CandidateSurvey(self.client, [query]).answer([query])
        except UnknownNames:
            return []
        interface_of, tree = self.server.interfaces.get, self.tree
        ways = [port_bindings.bind(ports, candidate) for candidate in answer.allocation_requests]
        return [
            way
            for way in ways
            if all(port_bindings.is_on(b, interface_of(port), tree) for port, b in way.items())
        ]

    def _query(self, ports: Sequence[Port]) -> CandidateQuery:
        flavor, root = self.server.owner.flavor, next(iter(self.tree.roots.values()))
        parts = list(bandwidth.translate(ServerRequest(flavor=flavor, ports=tuple(ports))))
        groups = [part for part in parts if isinstance(part, RequestGroup)]
        return CandidateQuery(
            # Placement accepts in_tree only for a group with resources.
            groups=tuple(g._replace(in_tree=root) if g.resources else g for g in groups),
            # Placement demands a policy for several groups. The flavor may have none, because its
            # server was booted when the ports requested nothing.
            group_policy=flavor.extra_specs.get(GROUP_POLICY, "none"),
            same_subtree=tuple(p.suffixes for p in parts if isinstance(p, SameSubtree)),
        )

    def _limit(self, lacks: Portion[ProviderId], pending: Portion[ProviderId]) -> str:
        """Return the reasons why the server cannot get the missing amounts, or an empty text."""
        limits = []
        for uuid, amounts in lacks.items():
            inventories = self.client.inventories(uuid).by_class
            used, present = self.client.usages(uuid), self.present.allocations.of(uuid)
            for name, amount in amounts.items():
                inventory = inventories.get(name)
                taken = used.get(name, 0) + pending.of(uuid).get(name, 0)
                # Placement checks max_unit and step_size against all that a consumer has of a
                # provider, not against what is added.
                held = present.get(name, 0)
                left = (inventory.capacity if inventory else 0) - taken + held
                if limit := limit_of(name, amount + held, inventory, left):
                    limits.append(f"{self.tree.name(uuid)}: {limit}")
        return "; ".join(limits)


def _flavor_amounts(owner: Owner) -> dict[str, int]:
    """Return the amounts that a flavor states itself, by resource class."""
    try:
        groups = ServerRequest(flavor=owner.flavor).own_groups.groups
    except InvalidInput:
        # The server is from before the flavor was checked: none of these amounts was claimed.
        return {}
    return CandidateQuery(groups=tuple(groups)).resources()
