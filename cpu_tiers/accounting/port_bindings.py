"""Which provider serves which port, and how much of a server's allocation is the port's.

Spec: bandwidth-resource-provider, "Mapping between physical resource
consumption and claimed resources". Pure: from ports and the chosen candidate,
or from what ``binding:profile`` says of a bound port.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.errors import FaultList
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.port import Port

ALLOCATION = "allocation"
"""The key of ``binding:profile`` that tells Neutron which providers serve a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortBinding:
    """A port that asks for something, and who serves it.

    :param providers: uuid of the provider that serves each group of the port,
        by the group's id; in the flat form that is the port's.
    """

    port: Port
    providers: Mapping[str, str]

    @property
    def allocation(self) -> str | dict[str, str]:
        """What ``binding:profile`` has as ``allocation``, in the form of the request."""
        return (
            dict(self.providers) if self.port.request.is_grouped else self.providers[self.port.id]
        )

    @property
    def portion(self) -> dict[str, dict[str, int]]:
        """The port's part of the server's allocation: provider to class to amount."""
        portion: dict[str, dict[str, int]] = {}
        for group in self.port.request.groups:
            for name, amount in group.resources.items():
                amounts = portion.setdefault(self.providers[group.suffix], {})
                amounts[name] = amounts.get(name, 0) + amount
        return portion


def bind(ports: Iterable[Port], chosen: AllocationRequest) -> dict[str, PortBinding]:
    """Return by id the ports that ask for something, with the providers of a candidate.

    :param chosen: the candidate, from an answer of microversion 1.34 or newer.
    :raises InvalidInput: malformed ports, groups that are not mapped to one
        provider, or amounts that the candidate does not allocate; all at once.
    """
    faults = FaultList()
    bindings = {}
    left = {uuid: dict(amounts) for uuid, amounts in chosen.allocations.items()}
    for port in ports:
        mapped = {}
        with faults:
            for group in port.request.groups:
                serving = chosen.mappings.get(group.suffix, ())
                if len(serving) == 1:
                    mapped[group.suffix] = serving[0]
                else:
                    faults.add(
                        f"port {port.id}, group {group.suffix}",
                        f"the candidate maps it to {', '.join(serving) or 'no provider'}",
                        "it must be one provider: take a candidate of this very query",
                    )
            if len(mapped) == len(port.request.groups) > 0:
                binding = PortBinding(port=port, providers=mapped)
                _take(binding, left, faults)
                bindings[port.id] = binding
    faults.raise_if_any()
    return bindings


def _take(binding: PortBinding, left: dict[str, dict[str, int]], faults: FaultList) -> None:
    """Take the port's portion out of what is left of the candidate's allocations."""
    for uuid, amounts in binding.portion.items():
        held = left.setdefault(uuid, {})
        for name, amount in amounts.items():
            held[name] = held.get(name, 0) - amount
            if held[name] < 0:
                faults.add(
                    f"port {binding.port.id}",
                    f"its {amount} of {name} on {uuid} is {-held[name]} more than is allocated",
                    "take a candidate of the query for these very ports",
                )


def read_binding(port: Port) -> PortBinding | None:
    """Return what the ``binding:profile`` of a bound port says; None if it asks for nothing.

    A text that names the one provider is taken for a request of one group in
    either form: Neutron may have changed the form since.

    :raises InvalidInput: it does not say which provider serves each group.
    """
    request = port.request
    if not request.groups:
        return None
    said = port.binding_profile.get(ALLOCATION)
    if isinstance(said, str) and len(request.groups) == 1:
        said = {request.groups[0].suffix: said}
    serving = said if isinstance(said, Mapping) else {}
    faults = FaultList()
    for group in request.groups:
        if not isinstance(serving.get(group.suffix), str):
            faults.add(
                f"port {port.id}, binding_profile, {ALLOCATION}",
                f"{said!r} names no provider for group {group.suffix}",
                "it must be the uuid of one",
            )
    faults.raise_if_any()
    return PortBinding(
        port=port, providers={group.suffix: serving[group.suffix] for group in request.groups}
    )


def parent_interfaces(
    requesters: Iterable[str],
    bindings: Mapping[str, PortBinding],
    provider_names: Mapping[str, str],
) -> dict[str, str]:
    """Return the network interface that each PCI request must take its device from.

    :param requesters: the ``requester_id`` of PCI requests: ids of ports. Those
        of ports that ask for nothing are left out of the answer.
    :param provider_names: by uuid; Neutron names a device
        ``<host>:<agent>:<interface>``.
    :raises InvalidInput: a port that no device serves, or several.
    """
    faults = FaultList()
    interfaces = {}
    for requester in requesters:
        if requester not in bindings:
            continue
        names = {provider_names.get(u, u) for u in bindings[requester].providers.values()}
        devices = {parts[2] for parts in (name.split(":") for name in names) if len(parts) == 3}
        if len(devices) == 1:
            (interfaces[requester],) = devices
        else:
            faults.add(
                f"PCI request of port {requester}",
                f"the providers {', '.join(sorted(names))} are {len(devices)} devices",
                "exactly one must be named <host>:<agent>:<interface>",
            )
    faults.raise_if_any()
    return interfaces
