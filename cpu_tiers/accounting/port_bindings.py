"""Port bindings: the provider that serves each group of a port, and the amounts of the port.

Spec: bandwidth-resource-provider, "Mapping between physical resource consumption and claimed
resources". A binding is made from ports and the chosen allocation candidate, or read from the
``binding:profile`` of a bound port. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.accounting.holdings import Portion, ProviderId, ProviderName, sum_portions
from cpu_tiers.errors import FaultList
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.network_agent import interface_of
from cpu_tiers.model.port import Port

ALLOCATION = "allocation"
"""The key of ``binding:profile`` that tells Neutron which providers serve a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortBinding:
    """A port with a resource request, and its providers.

    :param providers: the uuid of the provider for each group of the port, by the
        id of the group. In the flat form of a request, that is the id of the port.
    """

    port: Port
    providers: Mapping[str, ProviderId]

    @property
    def allocation(self) -> str | dict[str, str]:
        """The value of ``allocation`` in ``binding:profile``, in the form of the request."""
        return (
            dict(self.providers) if self.port.request.is_grouped else self.providers[self.port.id]
        )

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
    :raises InvalidInput: with every malformed port, every group that the
        candidate does not map to one provider, and every amount that the
        candidate does not allocate.
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
    """Add a fault for each amount of the port that the candidate does not allocate."""
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


def parent_interfaces(
    requesters: Iterable[str],
    bindings: Mapping[str, PortBinding],
    provider_names: Mapping[ProviderId, ProviderName],
) -> dict[str, str]:
    """Return the network interface from which each PCI request must take its device.

    :param requesters: the ``requester_id`` of PCI requests, which is the id of a
        port. A port that requests no resources is left out of the result.
    :param provider_names: by uuid; Neutron names a device
        ``<host>:<agent>:<interface>``.
    :raises InvalidInput: with every port that is served by no device, or by
        several devices.
    """
    faults = FaultList()
    interfaces: dict[str, str] = {}
    for requester in requesters:
        if requester not in bindings:
            continue
        names: set[str] = {
            provider_names.get(u, u) for u in bindings[requester].providers.values()
        }
        devices = set(map(interface_of, names)) - {None}
        if len(devices) == 1:
            (interfaces[requester],) = filter(None, devices)
        else:
            faults.add(
                f"PCI request of port {requester}",
                f"the providers {', '.join(sorted(names))} are {len(devices)} devices",
                "exactly one must be named <host>:<agent>:<interface>",
            )
    faults.raise_if_any()
    return interfaces
