"""A Neutron agent: which bandwidth it has to give, on which devices of which host.

Source: what agents report of themselves (``openstack network agent show``),
and Neutron's options of the same names. Pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.names import MAX_AMOUNT

Rates = Mapping[str, Mapping[str, int]]
"""What has a rate, to direction (``egress``, ``ingress``, ``any``), to the rate."""

_INTEGERS = {"min_unit": 1, "max_unit": 1, "reserved": 0, "step_size": 1}
"""Options of an inventory, and the least that Placement takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """An agent.

    :param bandwidths: of each device, in kilobit per second.
    :param physical_networks: of each device; a tunnel's has none.
    :param hypervisors: the compute provider of each device, by name.
    :param packet_rates: of each compute provider, in 1000 packets per second.
    :param bandwidth_options: of every inventory of bandwidth, such as ``reserved``.
    :param packet_rate_options: of every inventory of packet rates.
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

        :param where: what to call the document in an error.
        :raises InvalidInput: with every fault, each at its place.
        """
        faults = FaultList()
        at = DocumentPlace(where, faults)
        document = at.of(body, dict)
        faults.raise_if_any()
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
            packet_rates=packets or directed,  # Neutron takes the one or the other
            physical_networks=_networks(inner, options),
            hypervisors=_hypervisors(inner, options, document.get("host")),
            bandwidth_options=_inventory(inner, options, "inventory_defaults"),
            packet_rate_options=_inventory(inner, options, "packet_processing_inventory_defaults"),
        )
        faults.raise_if_any()
        return agent


def _text(at: DocumentPlace, body: Mapping[str, Any], key: str) -> str:
    text = body.get(key)
    if not isinstance(text, str) or not text.strip():
        (at / key).wrong(text, "give a name")
        return ""
    return text


def _rates(
    at: DocumentPlace, options: Mapping[str, Any], name: str, directions: Collection[str]
) -> dict[str, dict[str, int]]:
    """Return the rates above 0; Neutron reports no others."""
    key = f"resource_provider_{name}"
    found: dict[str, dict[str, int]] = {}
    for owner, rates in at.get(options, key, dict).items():
        found[owner] = {}
        for direction, rate in (at / key / owner).of(rates, dict).items():
            place = at / key / owner / direction
            if direction not in directions:
                place.wrong(rate, f"the direction can be {' or '.join(directions)}")
            elif rate is not None and (type(rate) is not int or not 0 <= rate <= MAX_AMOUNT):
                place.wrong(rate, f"give a whole number from 0 to {MAX_AMOUNT}, or null")
            elif rate:
                found[owner][direction] = rate
    return found


def _networks(at: DocumentPlace, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the physical network of each device: a bridge's, or those of a list."""
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
    found: dict[str, float] = {}
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
        found[option] = value
    return found
