"""Ports of a server that exists, for which nobody has allocated anything.

Spec: bandwidth-resource-provider, "Upgrade impact". Pure: ports, what their
server holds and the providers of its host in; what each port lacks out.

A port is served by what its ``binding:profile`` names. One whose profile names
nothing may still have its part in Placement, where Neutron did not hear of it:
so whatever the server holds beyond the parts of the others is looked through
first. That makes it safe to do all of it again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from types import MappingProxyType

from cpu_tiers.accounting.port_bindings import ALLOCATION, PortBinding, read_binding
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.port import Port
from cpu_tiers.model.request import RequestGroup

MOVE = "migrate the server: a move allocates for all of its ports"

Held = dict[str, dict[str, int]]
"""Provider uuid to resource class to amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTree:
    """The providers of a host, by uuid.

    :param root: the uuid of the host itself.
    :param parents: of each but the root.
    """

    root: str
    names: Mapping[str, str]
    parents: Mapping[str, str]
    traits: Mapping[str, frozenset[str]]

    def lineage(self, uuid: str) -> Iterator[str]:
        """Yield a provider, its parent, and so on up to the root."""
        yield uuid
        while uuid in self.parents:
            uuid = self.parents[uuid]
            yield uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class PortShortfall:
    """What a port of a server lacks.

    :param binding: who serves it; ``None`` where nobody does, or it cannot be told.
    :param lacks: what is to be added to the server's allocation.
    :param recorded: whether the port's profile says who serves it.
    :param limit: why nothing can be done here; empty where something can.
    :param advice: what to do then.
    """

    port: Port
    binding: PortBinding | None = None
    lacks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    recorded: bool = False
    limit: str = ""
    advice: str = MOVE

    def fault(self, owner: str) -> Fault:
        """Return what a person is told of a shortfall with a limit."""
        return Fault(
            where=f"port {self.port.id} of {owner}", given=self.limit, allowed=self.advice
        )


def find_port_shortfalls(
    ports: Iterable[Port],
    held: Mapping[str, Mapping[str, int]],
    tree: HostTree,
    interfaces: Mapping[str, str],
    flavors: Mapping[str, int] = MappingProxyType({}),
) -> tuple[PortShortfall, ...]:
    """Return what ports of a server lack; those that lack nothing are left out.

    Those that nobody serves yet have neither ``binding`` nor ``limit``.

    :param held: the server's allocation, by provider.
    :param interfaces: the interface that a port is on, by its id, where that is known.
    :param flavors: what the server's flavor itself asks for by class. Nobody
        tells of which provider that was given, so no provider's rest is taken
        for a port's that may be it.
    """
    left: Held = {uuid: dict(amounts) for uuid, amounts in held.items()}
    in_order = sorted(ports, key=lambda port: port.id)
    bound = [port for port in in_order if port.binding_profile.get(ALLOCATION)]
    others = [port for port in in_order if not port.binding_profile.get(ALLOCATION)]
    shortfalls = [_shortfall_of_bound(port, left, tree) for port in bound]
    left = {
        uuid: {name: max(0, amount - flavors.get(name, 0)) for name, amount in amounts.items()}
        for uuid, amounts in left.items()
    }
    shortfalls += [
        _shortfall_of_unbound(port, left, tree, interfaces.get(port.id)) for port in others
    ]
    return tuple(shortfall for shortfall in shortfalls if shortfall is not None)


def _shortfall_of_bound(port: Port, left: Held, tree: HostTree) -> PortShortfall | None:
    try:
        binding = read_binding(port)
    except InvalidInput as error:
        return PortShortfall(port=port, recorded=True, limit=_one_line(error))
    if binding is None:
        return None
    shortfall = PortShortfall(port=port, binding=binding, recorded=True)
    if strange := sorted(set(binding.providers.values()).difference(tree.names)):
        return replace(
            shortfall, limit=f"its profile names {', '.join(strange)}, and not of this host"
        )
    lacks = _take(binding, left)
    return replace(shortfall, lacks=lacks) if lacks else None


def _shortfall_of_unbound(
    port: Port, left: Held, tree: HostTree, interface: str | None
) -> PortShortfall | None:
    try:
        groups = port.request.groups
    except InvalidInput as error:
        return PortShortfall(port=port, limit=_one_line(error))
    if not groups:
        return None
    found = [b for b in _servings(port, left, tree) if is_on(b, interface, tree)]
    if not found:
        return PortShortfall(port=port)
    if len(found) > 1 and not found[0].portion:  # traits alone: nothing tells which
        return PortShortfall(port=port, limit=several(found, tree))
    _take(found[0], left)
    return PortShortfall(port=port, binding=found[0])


def _take(binding: PortBinding, left: Held) -> Held:
    """Take the port's part out of what is left; return what is not there."""
    lacks: Held = {}
    for uuid, amounts in binding.portion.items():
        of_provider = left.setdefault(uuid, {})
        for name, amount in amounts.items():
            there = min(amount, of_provider.get(name, 0))
            of_provider[name] = of_provider.get(name, 0) - there
            if there < amount:
                lacks.setdefault(uuid, {})[name] = amount - there
    return lacks


def _servings(port: Port, left: Held, tree: HostTree) -> Iterator[PortBinding]:
    """Yield the ways in which what is left may be the port's part."""
    suffixes = [group.suffix for group in port.request.groups]
    fitting = [
        [uuid for uuid in tree.names if _serves(group, tree.traits[uuid], left.get(uuid, {}))]
        for group in port.request.groups
    ]
    for chosen in product(*fitting):
        binding = PortBinding(port=port, providers=dict(zip(suffixes, chosen, strict=True)))
        copy: Held = {uuid: dict(amounts) for uuid, amounts in left.items()}
        if not _take(binding, copy) and _in_subtrees(binding, tree):
            yield binding


def _serves(group: RequestGroup, traits: frozenset[str], left: Mapping[str, int]) -> bool:
    return (
        group.required <= traits
        and group.forbidden.isdisjoint(traits)
        and not any(traits.isdisjoint(some) for some in group.any_of)
        and all(left.get(name, 0) >= amount for name, amount in group.resources.items())
    )


def _in_subtrees(binding: PortBinding, tree: HostTree) -> bool:
    """Tell whether of each same_subtree one provider stands above all others."""
    return all(
        set.intersection(*(set(tree.lineage(binding.providers[s])) for s in same.suffixes))
        & {binding.providers[s] for s in same.suffixes}
        for same in binding.port.request.same_subtree
    )


def is_on(binding: PortBinding, interface: str | None, tree: HostTree) -> bool:
    """Tell whether the devices among the providers are that interface.

    Neutron names a device ``<host>:<agent>:<interface>``.
    """
    names = (tree.names.get(uuid, "").split(":") for uuid in binding.providers.values())
    return interface is None or all(name[2] == interface for name in names if len(name) == 3)


def several(bindings: Iterable[PortBinding], tree: HostTree) -> str:
    """Return that it cannot be told which of several ways is the real one."""
    ways = (
        " and ".join(sorted(map(tree.names.__getitem__, b.providers.values()))) for b in bindings
    )
    return f"it may be on {', or on '.join(sorted(set(ways)))}, and nothing tells which"


def _one_line(error: InvalidInput) -> str:
    return str(error).replace("\n", "; ")
