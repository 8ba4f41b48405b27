"""The provider trees of Neutron's agents: devices below each host, with their bandwidth.

Names, uuids, traits and inventories are equal to the ones that Neutron computes
with neutron-lib, so that Neutron and cpu-tiers write the same tree::

    compute1                                  Nova's, and left alone
      compute1:Open vSwitch agent             packet rates
        compute1:Open vSwitch agent:br-ex     bandwidth, CUSTOM_PHYSNET_…

Source: ``neutron_lib.placement`` 5.0.1, and its use by Neutron 29.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model import names
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import MAX_AMOUNT, custom_trait, interface_of, is_trait
from cpu_tiers.tools.networking.network_agent import OVN_AGENT, NetworkAgent

GUARANTEED_BW, BEST_EFFORT_BW = "CUSTOM_GUARANTEED_BW", "CUSTOM_BEST_EFFORT_BW"
"""Traits for the kinds of ports of a device: operators choose them, Neutron reports none."""

TUNNELLED_DEVICE = "rp_tunnelled"
"""Default of Neutron's ``[ml2] tunnelled_network_rp_name``."""

_TUNNEL = "CUSTOM_NETWORK_TUNNEL_PROVIDER"
_MANAGED_TRAITS = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_", _TUNNEL)
_BANDWIDTH = {"egress": names.NET_BW_EGR, "ingress": names.NET_BW_IGR}
_PACKETS = {
    "any": names.NET_PACKETS,
    "egress": names.NET_PACKETS_EGR,
    "ingress": names.NET_PACKETS_IGR,
}


class _Driver(NamedTuple):
    """A mechanism driver of Neutron: the namespace of its uuids, and its VNIC types.

    :param has_prohibited: Neutron leaves out the VNIC types of ``vnic_type_prohibit_list``.
    """

    namespace: UUID
    vnic_types: tuple[str, ...]
    has_prohibited: bool = True


_DRIVERS = {
    "Open vSwitch agent": _Driver(
        UUID("87ee7d5c-73bb-11e8-9008-c4d987b2a692"), ("normal", "direct", "smart-nic", "vdpa")
    ),
    "NIC Switch agent": _Driver(
        UUID("87f1895c-73bb-11e8-9008-c4d987b2a692"),
        ("direct", "macvtap", "direct-physical", "accelerator-direct"),
    ),
    OVN_AGENT: _Driver(
        UUID("5533233b-800c-11eb-b1f4-000056b2f5b8"),
        (
            *("normal", "direct", "direct-physical", "macvtap", "vdpa", "remote-managed"),
            *("baremetal", "virtio-forwarder"),
        ),
        has_prohibited=False,
    ),
}


def build_networking_trees(
    agents: Iterable[NetworkAgent],
    *,
    device_traits: Mapping[str, Collection[str]] | None = None,
    prohibited_vnic_types: Collection[str] = (),
    tunnelled_device: str = TUNNELLED_DEVICE,
) -> tuple[ProviderTree, ...]:
    """Return a provider tree for each host that has devices of the agents.

    :param device_traits: additional traits by device, such as :data:`GUARANTEED_BW`.
    :param prohibited_vnic_types: Neutron's ``vnic_type_prohibit_list``.
    :param tunnelled_device: Neutron's ``[ml2] tunnelled_network_rp_name``.
    :raises InvalidInput: an agent of an unknown type or given twice, devices
        without a host or a physical network, impossible inventories; all at once.
    """
    faults = FaultList()
    hosts: dict[str, dict[str, ResourceProvider]] = {}
    traits = device_traits or {}
    for agent in agents:
        with faults:
            for provider in _providers(agent, traits, prohibited_vnic_types, tunnelled_device):
                host = provider.name.split(":", 1)[0]
                if hosts.setdefault(host, {}).setdefault(provider.name, provider) != provider:
                    faults.add(provider.name, "reported by two agents", "give each agent once")
    _check_traits(traits, [name for providers in hosts.values() for name in providers], faults)
    faults.raise_if_any()
    # GUARANTEED_BW and BEST_EFFORT_BW may have been set by hand: cpu-tiers removes these traits
    # only if the operator lets cpu-tiers write them.
    managed = (*_MANAGED_TRAITS, *([GUARANTEED_BW, BEST_EFFORT_BW] if traits else []))
    return tuple(
        ProviderTree(
            providers=(ResourceProvider(name=host), *providers.values()),
            managed_classes=frozenset({*_BANDWIDTH.values(), *_PACKETS.values()}),
            managed_traits=managed,
            root_is_foreign=True,
        )
        for host, providers in hosts.items()
    )


def _check_traits(
    traits: Mapping[str, Collection[str]], providers: Iterable[str], faults: FaultList
) -> None:
    known = set(map(interface_of, providers))
    for device, device_traits in traits.items():
        where = f"device {device}"
        if device not in known:
            faults.add(where, "no agent reports it", "name a device with bandwidth")
        for name in sorted(device_traits):
            if not is_trait(name):
                faults.add(where, f"trait {name!r}", "give a trait of os-traits, or CUSTOM_…")


def _providers(
    agent: NetworkAgent,
    traits: Mapping[str, Collection[str]],
    prohibited: Collection[str],
    tunnelled_device: str,
) -> Iterable[ResourceProvider]:
    """Yield the providers of an agent, each parent before its children."""
    driver = _driver(agent, tunnelled_device)
    left_out = prohibited if driver.has_prohibited else ()
    vnic_types = [name for name in driver.vnic_types if name not in left_out]
    vnic_traits = frozenset(custom_trait(f"VNIC_TYPE_{name}") for name in vnic_types)
    for host in dict.fromkeys([*agent.hypervisors.values(), *agent.packet_rates]):
        rates = agent.packet_rates.get(host, {})
        yield ResourceProvider(
            name=f"{host}:{agent.agent_type}",
            parent=host,
            uuid=str(uuid5(driver.namespace, host)),
            inventories=_inventories(rates, _PACKETS, agent.packet_rate_options),
            traits=vnic_traits,
        )
    for device, rates in agent.bandwidths.items():
        host, network = agent.hypervisors[device], agent.physical_networks.get(device)
        networks = {_TUNNEL} if device == tunnelled_device else set()
        networks |= {custom_trait(f"PHYSNET_{network}")} if network else set()
        yield ResourceProvider(
            name=f"{host}:{agent.agent_type}:{device}",
            parent=f"{host}:{agent.agent_type}",
            uuid=str(uuid5(driver.namespace, f"{host}:{device}")),
            inventories=_inventories(rates, _BANDWIDTH, agent.bandwidth_options),
            traits=vnic_traits.union(networks, traits.get(device, ())),
        )


def _driver(agent: NetworkAgent, tunnelled_device: str) -> _Driver:
    """Return the driver of an agent, whose devices are checked."""
    where = f"{agent.agent_type} on {agent.host}"
    if agent.agent_type not in _DRIVERS:
        raise InvalidInput.of(where, "an agent of unknown type", f"known: {', '.join(_DRIVERS)}")
    faults = FaultList()
    for device in agent.bandwidths:
        place = f"{where}, device {device}"
        if device not in agent.hypervisors:
            faults.add(place, "no resource_provider_hypervisors", "name the host of the device")
        if device not in agent.physical_networks and device != tunnelled_device:
            faults.add(place, "no physical network", "map it in bridge_mappings, device_mappings")
    for name in {*agent.hypervisors.values(), *agent.packet_rates, *agent.bandwidths}:
        # Providers are named HOST:AGENT_TYPE:DEVICE, and read back by the colons.
        if ":" in name or not name:
            faults.add(where, f"the name {name!r}", "names of hosts and devices have no colon")
    faults.raise_if_any()
    return _DRIVERS[agent.agent_type]


def _inventories(
    rates: Mapping[str, int], classes: Mapping[str, str], options: Mapping[str, Any]
) -> dict[str, Inventory]:
    return {
        name: Inventory(total=rates[direction], **{"max_unit": MAX_AMOUNT, **options})
        for direction, name in classes.items()
        if direction in rates
    }
