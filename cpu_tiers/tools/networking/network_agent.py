"""A Neutron agent: the bandwidth and the packet rates of the devices of a host.

Agents report them in their configuration (``openstack network agent show``), under the names of
Neutron's options. OVN keeps the same options in its southbound database, in ``ovn-cms-options``
and ``ovn-bridge-mappings`` of each chassis (``ovn-sbctl -f json list Chassis``).

Source: ``neutron/plugins/ml2/drivers/ovn/mech_driver/ovsdb/extensions/placement.py`` of
Neutron 29, and the manual page of ovn-sbctl. Pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.names import MAX_AMOUNT

Rates = Mapping[str, Mapping[str, int]]
"""Rates by device or provider, and by direction (``egress``, ``ingress``, ``any``)."""

OVN_AGENT = "OVN Controller agent"
"""The type of the agent that Neutron names in the providers of a chassis of OVN."""

_OVN_CONTROLLERS = (OVN_AGENT, "OVN Controller Gateway agent")

_INTEGERS = {"min_unit": 1, "max_unit": 1, "reserved": 0, "step_size": 1}
"""Integer options of an inventory, and the smallest values that Placement accepts."""

_BANDWIDTHS = "resource_provider_bandwidths"
_HYPERVISORS = "resource_provider_hypervisors"
_DEFAULTS = "resource_provider_inventory_defaults"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """The report of an agent.

    :param bandwidths: the bandwidth of each device, in kilobit per second.
    :param physical_networks: the physical network of each device; the device of a
        tunnel has no physical network.
    :param hypervisors: the name of the compute node's provider, by device.
    :param packet_rates: the packet rates of each compute node's provider, in 1000
        packets per second.
    :param bandwidth_options: options for all inventories of bandwidth, such as
        ``reserved``.
    :param packet_rate_options: options for all inventories of packet rates.
    """

    host: str
    agent_type: str
    bandwidths: Rates
    physical_networks: Mapping[str, str]
    hypervisors: Mapping[str, str]
    packet_rates: Rates = field(default_factory=dict)
    bandwidth_options: Mapping[str, float] = field(default_factory=dict)
    packet_rate_options: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, body: object, *, where: str) -> "NetworkAgent":
        """Read the decoded JSON of ``openstack network agent show``.

        :param where: the name of the document in an error message.
        :raises InvalidInput: with every fault and its place.
        """
        faults = FaultList()
        at = DocumentPlace(where, faults)
        document = at.of(body, dict)
        _check_configured(at, document)
        faults.raise_if_any()
        # Neutron's API says configurations; openstacksdk, and so the client, says configuration.
        key = "configurations" if "configurations" in document else "configuration"
        inner = at / key
        options = inner.of(document.get(key), dict)
        both = ("egress", "ingress")
        packets = _rates(inner, options, "packet_processing_without_direction", ("any",))
        directed = _rates(inner, options, "packet_processing_with_direction", both)
        agent = cls(
            host=_text(at, document, "host"),
            agent_type=_text(at, document, "agent_type"),
            bandwidths=_rates(inner, options, "bandwidths", both),
            packet_rates=packets or directed,  # Neutron allows only one of the two options
            physical_networks=_networks(inner, options),
            hypervisors=_hypervisors(inner, options, document.get("host")),
            bandwidth_options=_inventory(inner, options, "inventory_defaults"),
            packet_rate_options=_inventory(inner, options, "packet_processing_inventory_defaults"),
        )
        faults.raise_if_any()
        return agent


def reports_resources(document: Mapping[str, Any]) -> bool:
    """Tell whether the document of an agent has bandwidths or packet rates.

    An agent of DHCP or of metadata has none. A controller of OVN counts, too: it has its
    bandwidths elsewhere, and :meth:`NetworkAgent.parse` says where.
    """
    options = document.get("configurations", document.get("configuration"))
    return document.get("agent_type") in _OVN_CONTROLLERS or any(
        key.startswith(("resource_provider_bandwidths", "resource_provider_packet_processing_w"))
        and value
        for key, value in (options if isinstance(options, Mapping) else {}).items()
    )


def _check_configured(at: DocumentPlace, document: Mapping[str, Any]) -> None:
    """Refuse the report of an OVN controller, which has none of the options for Placement."""
    kind = document.get("agent_type")
    inner = document.get("configurations", document.get("configuration"))
    if kind in _OVN_CONTROLLERS and "chassis_name" in (inner or ()):
        allowed = "OVN keeps the bandwidths in its database: give the output of `ovn-sbctl -f json"
        (at / "agent_type").wrong(kind, f"{allowed} list Chassis`")


def _text(at: DocumentPlace, body: Mapping[str, Any], key: str) -> str:
    text = body.get(key)
    if not isinstance(text, str) or not text.strip():
        (at / key).wrong(text, "give a name")
        return ""
    return text


def _rates(
    at: DocumentPlace, options: Mapping[str, Any], name: str, directions: Collection[str]
) -> dict[str, dict[str, int]]:
    """Return the rates above 0; Neutron reports no inventory for a rate of 0 or null."""
    key = f"resource_provider_{name}"
    all_rates: dict[str, dict[str, int]] = {}
    for owner, rates in at.get(options, key, dict).items():
        all_rates[owner] = {}
        for direction, rate in (at / key / owner).of(rates, dict).items():
            place = at / key / owner / direction
            if direction not in directions:
                place.wrong(rate, f"the direction can be {' or '.join(directions)}")
            elif rate is not None and (type(rate) is not int or not 0 <= rate <= MAX_AMOUNT):
                place.wrong(rate, f"give a whole number from 0 to {MAX_AMOUNT}, or null")
            elif rate:
                all_rates[owner][direction] = rate
    return all_rates


def _networks(at: DocumentPlace, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the physical network of each device.

    ``bridge_mappings`` names a bridge for each network, ``device_mappings`` a list of
    devices.
    """
    networks = {}
    for key in ("bridge_mappings", "device_mappings"):
        for network, devices in at.get(options, key, dict).items():
            place = at / key / network
            for device in devices if isinstance(devices, list) else [devices]:
                networks[place.of(device, str)] = str(network)
    return networks


def _hypervisors(at: DocumentPlace, options: Mapping[str, Any], host: object) -> dict[str, str]:
    key = "resource_provider_hypervisors"
    if key not in options:  # agents of before Ussuri
        return dict.fromkeys(at.get(options, "resource_provider_bandwidths", dict), str(host))
    given = at.get(options, key, dict).items()
    return {device: (at / key / device).of(name, str) for device, name in given}


def _inventory(at: DocumentPlace, options: Mapping[str, Any], name: str) -> dict[str, float]:
    key = f"resource_provider_{name}"
    inventory: dict[str, float] = {}
    for option, value in at.get(options, key, dict).items():
        place = at / key / option
        if option in _INTEGERS:
            if type(value) is not int or not _INTEGERS[option] <= value <= MAX_AMOUNT:
                place.wrong(value, f"give a whole number of at least {_INTEGERS[option]}")
                continue
        elif option != "allocation_ratio":
            place.wrong(value, f"options are allocation_ratio, {', '.join(_INTEGERS)}")
            continue
        elif isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            place.wrong(value, "give a number above 0")
            continue
        inventory[option] = value
    return inventory


def is_chassis_table(body: object) -> bool:
    """Tell whether a document is a table of OVN's database."""
    return isinstance(body, dict) and {"headings", "data"} <= body.keys()


def read_chassis(body: object, *, where: str) -> tuple[NetworkAgent, ...]:
    """Read the decoded JSON of ``ovn-sbctl -f json list Chassis``.

    :param where: the name of the document in an error message.
    :returns: an agent for each chassis with an option for Placement. Other chassis have no
        provider.
    :raises InvalidInput: with every fault and its place.
    """
    faults = FaultList()
    at = DocumentPlace(where, faults)
    table = at.of(body, dict)
    headings = at.get(table, "headings", list)
    for column in ("hostname", "other_config"):
        if column not in headings:
            (at / "headings").wrong(headings, f"list the column {column}, too")
    faults.raise_if_any()
    agents = []
    for index, row in enumerate(at.get(table, "data", list)):
        with faults:
            values = dict(zip(headings, (at / f"data[{index}]").of(row, list), strict=False))
            host = str(values.get("hostname"))
            chassis = at / f"chassis {host}"
            config = _database_map(chassis / "other_config", values.get("other_config"))
            if options := _chassis_options(chassis, config):
                agent = {"host": host, "agent_type": OVN_AGENT, "configurations": options}
                agents.append(NetworkAgent.parse(agent, where=chassis.path))
    faults.raise_if_any()
    return tuple(agents)


def _database_map(at: DocumentPlace, value: object) -> dict[str, str]:
    """Return a map of OVN's database, which is ``["map", [[KEY, VALUE], …]]`` in JSON."""
    if isinstance(value, list) and len(value) == 2 and value[0] == "map":
        pairs = at.of(value[1], list)
        if all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            return {str(key): str(text) for key, text in pairs}
    at.wrong(value, 'give a map of the database, ["map", [[KEY, VALUE], …]]')
    return {}


def _chassis_options(at: DocumentPlace, config: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a chassis in the form that other agents report; empty for none."""
    options: dict[str, str] = {}
    for option in config.get("ovn-cms-options", "").split(","):
        name, _, value = option.strip().partition("=")
        options[name] = value
    if not options.keys() & {_BANDWIDTHS, _HYPERVISORS}:
        return {}
    networks = _named_values(
        at / "ovn-bridge-mappings", config.get("ovn-bridge-mappings", ""), ","
    )
    return {
        _BANDWIDTHS: _device_rates(at / _BANDWIDTHS, options.get(_BANDWIDTHS, "")),
        _HYPERVISORS: _named_values(at / _HYPERVISORS, options.get(_HYPERVISORS, "")),
        _DEFAULTS: {
            name: _number(text)
            for name, text in _named_values(at / _DEFAULTS, options.get(_DEFAULTS, "")).items()
        },
        "bridge_mappings": networks,
    }


def _device_rates(at: DocumentPlace, text: str) -> dict[str, dict[str, object]]:
    """Read ``DEVICE:EGRESS:INGRESS;…``; a bandwidth may be empty, and both may be missing."""
    bandwidths: dict[str, dict[str, object]] = {}
    for part in filter(None, text.split(";")):
        device, *rates = part.strip().split(":")
        if len(rates) not in (0, 2) or device in bandwidths:
            at.wrong(part, "give DEVICE:EGRESS:INGRESS, and each device once")
        directions = zip(("egress", "ingress"), rates, strict=False)
        bandwidths[device] = {name: _number(rate) if rate else None for name, rate in directions}
    return bandwidths


def _named_values(at: DocumentPlace, text: str, separator: str = ";") -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(separator))):
        name, colon, value = part.partition(":")
        if not (name and colon and value) or name in pairs:
            at.wrong(part, "give NAME:VALUE, and each name once")
        pairs[name.strip()] = value.strip()
    return pairs


def _number(text: str) -> int | float | str:
    """Return a number; another text unchanged, which the check of the agent refuses."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
