"""Port bindings: the provider that serves each group of a port, and the amounts of the port.

Spec: bandwidth-resource-provider, "Mapping between physical resource consumption and claimed
resources" and "Upgrade impact". A shortfall is what the ports of a server request and the server
does not hold.

A port without a provider in its profile may still have allocations in Placement, if the write to
Neutron failed. So the allocations of the server that belong to no other port are searched first,
and healing a server again is safe. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from types import MappingProxyType

from cpu_tiers.accounting.holdings import Amounts, Portion, ProviderId, ProviderName, sum_portions
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import interface_of
from cpu_tiers.model.port import Port
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.model.request import RequestGroup

ALLOCATION = "allocation"
"""The key of ``binding:profile`` that tells Neutron which providers serve a port."""

MOVE = "migrate the server: a move allocates for all of its ports"
ById = Portion[ProviderId]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortBinding:
    """A port with a resource request, and its providers.

    :param providers: by the id of each group of the port; in the flat form of a request, that is
        the id of the port.
    """

    port: Port
    providers: Mapping[str, ProviderId]

    @property
    def allocation(self) -> str | dict[str, str]:
        """The value of ``allocation`` in ``binding:profile``, in the form of the request."""
        is_grouped = self.port.request.is_grouped
        return dict(self.providers) if is_grouped else self.providers[self.port.id]

    @property
    def portion(self) -> Portion[ProviderId]:
        """The part of the server's allocations that is the port's."""
        return sum_portions(
            Portion({self.providers[group.suffix]: group.resources})
            for group in self.port.request.groups
        )


def bind(ports: Iterable[Port], chosen: AllocationRequest) -> dict[str, PortBinding]:
    """Return the bindings of the ports that request resources, by the id of the port.

    :param chosen: the candidate, from an answer of microversion 1.34 or newer.
    :raises InvalidInput: with every malformed port, every group that the candidate does not map
        to one provider, and every amount that the candidate does not allocate.
    """
    faults = FaultList()
    bindings = {}
    left = Portion.by_id(chosen.allocations)
    for port in ports:
        mapped = {}
        with faults:
            for group in port.request.groups:
                serving = chosen.mappings.get(group.suffix, ())
                if len(serving) == 1:
                    mapped[group.suffix] = ProviderId(serving[0])
                else:
                    faults.add(
                        f"port {port.id}, group {group.suffix}",
                        f"the candidate maps it to {', '.join(serving) or 'no provider'}",
                        "it must be one provider: take a candidate of this very query",
                    )
            if len(mapped) == len(port.request.groups) > 0:
                binding = PortBinding(port=port, providers=mapped)
                bindings[port.id] = binding
                _check_allocated(binding, left, faults)
                left -= binding.portion
    faults.raise_if_any()
    return bindings


def _check_allocated(binding: PortBinding, left: Portion[ProviderId], faults: FaultList) -> None:
    for uuid, amounts in (binding.portion - left).items():
        for name, excess in amounts.items():
            faults.add(
                f"port {binding.port.id}",
                f"its {binding.portion[uuid][name]} of {name} on {uuid} is {excess} more than is"
                " allocated",
                "take a candidate of the query for these very ports",
            )


def read_binding(port: Port) -> PortBinding | None:
    """Return the binding that the ``binding:profile`` of a bound port tells.

    :return: ``None`` if the port requests nothing.
    :raises InvalidInput: the profile does not name a provider for each group.
    """
    request = port.request
    if not request.groups:
        return None
    profile = port.binding_profile.get(ALLOCATION)
    if isinstance(profile, str) and len(request.groups) == 1:
        # Neutron may have changed the form of the request since the port was bound: so the one
        # uuid of the flat form is good for one group of the other form as well.
        profile = {request.groups[0].suffix: profile}
    serving = profile if isinstance(profile, Mapping) else {}
    faults = FaultList()
    for group in request.groups:
        if not isinstance(serving.get(group.suffix), str):
            faults.add(
                f"port {port.id}, binding_profile, {ALLOCATION}",
                f"{profile!r} names no provider for group {group.suffix}",
                "it must be the uuid of a provider",
            )
    faults.raise_if_any()
    suffixes = [group.suffix for group in request.groups]
    return PortBinding(port=port, providers={s: ProviderId(serving[s]) for s in suffixes})


@dataclass(frozen=True, slots=True, kw_only=True)
class PortShortfall:
    """The missing resources of a port, or its providers, if Neutron does not know them.

    :param binding: ``None`` if no provider serves the port, or if that cannot be told.
    :param lacks: the amounts to add to the server's allocations.
    :param recorded: whether the profile of the port names its providers.
    :param limit: the reason why the port cannot be healed here; empty if it can.
    :param advice: what to do if there is a limit.
    """

    port: Port
    binding: PortBinding | None = None
    lacks: ById = field(default_factory=Portion)
    recorded: bool = False
    limit: str = ""
    advice: str = MOVE

    def fault(self, owner: str) -> Fault:
        """Return the message for a shortfall with a limit."""
        return Fault(f"port {self.port.id} of {owner}", self.limit, self.advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortPlan:
    """The shortfalls of the ports of a host.

    :param host: the name of the root provider.
    :param asking: the number of ports on the host that request resources.
    :param shortfalls: each with the server of the port.
    :param tree: the providers of the host; empty if no port requests resources.
    """

    host: str
    asking: int = 0
    shortfalls: tuple[tuple[Owner, PortShortfall], ...] = ()
    tree: ProviderIndex = field(default_factory=lambda: ProviderIndex(()))

    def providers(self, shortfall: PortShortfall) -> list[str]:
        """Return the names of the providers that serve a port."""
        serving = shortfall.binding.providers.values() if shortfall.binding else ()
        return sorted({self.tree.name(uuid) for uuid in serving})

    def goes_to(self, shortfall: PortShortfall) -> Portion[ProviderName]:
        """Return the amounts that the server of a port gets."""
        return shortfall.lacks.renamed(lambda uuid: ProviderName(self.tree.name(uuid)))


def find_port_shortfalls(
    ports: Iterable[Port],
    allocations: ById,
    tree: ProviderIndex,
    interfaces: Mapping[str, str],
    flavor_amounts: Amounts = MappingProxyType({}),
) -> tuple[PortShortfall, ...]:
    """Return the shortfalls of a server's ports, without the ports that lack nothing.

    A port that no provider serves yet has neither a ``binding`` nor a ``limit``.

    :param allocations: of the server.
    :param interfaces: by the id of the port, as far as they are known.
    :param flavor_amounts: what the server's flavor itself requests. Nothing tells which provider
        gave it, so these amounts of any provider are never taken for the part of a port.
    """
    # Each check returns the shortfall, and the allocations that are left for other ports.
    in_order, left = sorted(ports, key=lambda port: port.id), allocations
    shortfalls: list[PortShortfall | None] = []
    for port in in_order:
        if port.binding_profile.get(ALLOCATION):
            shortfall, left = _check_bound(port, left, tree)
            shortfalls.append(shortfall)
    left -= Portion(dict.fromkeys(left, flavor_amounts))
    for port in in_order:
        if not port.binding_profile.get(ALLOCATION):
            shortfall, left = _check_unbound(port, left, tree, interfaces.get(port.id))
            shortfalls.append(shortfall)
    return tuple(filter(None, shortfalls))


def _check_bound(port: Port, left: ById, tree: ProviderIndex) -> tuple[PortShortfall | None, ById]:
    try:
        binding = read_binding(port)
    except InvalidInput as error:
        return PortShortfall(port=port, recorded=True, limit=one_line(error)), left
    if binding is None:
        return None, left
    shortfall = PortShortfall(port=port, binding=binding, recorded=True)
    if strange := sorted(set(binding.providers.values()).difference(tree.by_id)):
        limit = f"its profile names {', '.join(strange)}: no provider of this host"
        return replace(shortfall, limit=limit), left
    lacks = binding.portion - left
    return replace(shortfall, lacks=lacks) if lacks else None, left - binding.portion


def _check_unbound(
    port: Port, left: ById, tree: ProviderIndex, interface: str | None
) -> tuple[PortShortfall | None, ById]:
    try:
        groups = port.request.groups
    except InvalidInput as error:
        return PortShortfall(port=port, limit=one_line(error)), left
    if not groups:
        return None, left
    bindings = [b for b in _possible_bindings(port, left, tree) if is_on(b, interface, tree)]
    if not bindings:
        return PortShortfall(port=port), left
    if len(bindings) > 1 and not bindings[0].portion:
        # A port that requests only traits leaves no amount behind that tells its providers.
        return PortShortfall(port=port, limit=several(bindings, tree)), left
    return PortShortfall(port=port, binding=bindings[0]), left - bindings[0].portion


def _possible_bindings(port: Port, left: ById, tree: ProviderIndex) -> Iterator[PortBinding]:
    suffixes = [group.suffix for group in port.request.groups]
    providers = [(ProviderId(uuid), provider) for uuid, provider in tree.by_id.items()]
    fitting = [
        [uuid for uuid, each in providers if _can_serve(group, each.traits, left.of(uuid))]
        for group in port.request.groups
    ]
    for chosen in product(*fitting):
        binding = PortBinding(port=port, providers=dict(zip(suffixes, chosen, strict=True)))
        # Two groups of the port may each fit on a provider that has too little for both.
        if not binding.portion - left and _in_subtrees(binding, tree):
            yield binding


def _can_serve(group: RequestGroup, traits: frozenset[str], left: Amounts) -> bool:
    return (
        group.required <= traits
        and group.forbidden.isdisjoint(traits)
        and not any(traits.isdisjoint(some) for some in group.any_of)
        and all(left.get(name, 0) >= amount for name, amount in group.resources.items())
    )


def _in_subtrees(binding: PortBinding, tree: ProviderIndex) -> bool:
    """Tell whether of the providers of each same_subtree, one is an ancestor of all the rest."""
    for same in binding.port.request.same_subtree:
        providers = {binding.providers[suffix] for suffix in same.suffixes}
        if not providers.intersection(*(tree.lineage(uuid) for uuid in providers)):
            return False
    return True


def is_on(binding: PortBinding, interface: str | None, tree: ProviderIndex) -> bool:
    """Tell whether all devices among the providers are on a network interface."""
    interfaces = {interface_of(tree.name(u)) for u in binding.providers.values()}
    return interface is None or interfaces <= {interface, None}


def several(bindings: Iterable[PortBinding], tree: ProviderIndex) -> str:
    """Return the text of the limit of a port with several possible bindings."""
    serving = (sorted(map(tree.name, binding.providers.values())) for binding in bindings)
    places = map(" and ".join, serving)
    return f"it may be on {', or on '.join(sorted(set(places)))}, and nothing tells which"


def one_line(error: InvalidInput) -> str:
    """Return the faults of an error as the text of a limit."""
    return str(error).replace("\n", "; ")
