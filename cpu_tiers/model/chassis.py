"""The chassis of OVN: the bandwidth of the devices of a host, as the OVN controller agent has it.

OVN keeps the options that other agents of Neutron report in its southbound database, in
``ovn-cms-options`` and ``ovn-bridge-mappings`` of each chassis. ``ovn-sbctl -f json list Chassis``
prints the chassis.

Source: ``neutron/plugins/ml2/drivers/ovn/mech_driver/ovsdb/extensions/placement.py`` of
Neutron 29, and the manual page of ovn-sbctl. Pure.
"""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.network_agent import OVN_AGENT, NetworkAgent

_BANDWIDTHS = "resource_provider_bandwidths"
_HYPERVISORS = "resource_provider_hypervisors"
_DEFAULTS = "resource_provider_inventory_defaults"


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
            config = _map(chassis / "other_config", values.get("other_config"))
            if options := _placement_options(chassis, config):
                agent = {"host": host, "agent_type": OVN_AGENT, "configurations": options}
                agents.append(NetworkAgent.parse(agent, where=chassis.path))
    faults.raise_if_any()
    return tuple(agents)


def _map(at: DocumentPlace, value: object) -> dict[str, str]:
    """Return a map of OVN's database, which is ``["map", [[KEY, VALUE], …]]`` in JSON."""
    if isinstance(value, list) and len(value) == 2 and value[0] == "map":
        pairs = at.of(value[1], list)
        if all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            return {str(key): str(text) for key, text in pairs}
    at.wrong(value, 'give a map of the database, ["map", [[KEY, VALUE], …]]')
    return {}


def _placement_options(at: DocumentPlace, config: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a chassis in the form that other agents report; empty for none."""
    options: dict[str, str] = {}
    for option in config.get("ovn-cms-options", "").split(","):
        name, _, value = option.strip().partition("=")
        options[name] = value
    if not options.keys() & {_BANDWIDTHS, _HYPERVISORS}:
        return {}
    networks = _pairs(at / "ovn-bridge-mappings", config.get("ovn-bridge-mappings", ""), ",")
    return {
        _BANDWIDTHS: _bandwidths(at / _BANDWIDTHS, options.get(_BANDWIDTHS, "")),
        _HYPERVISORS: _pairs(at / _HYPERVISORS, options.get(_HYPERVISORS, "")),
        _DEFAULTS: {
            name: _number(text)
            for name, text in _pairs(at / _DEFAULTS, options.get(_DEFAULTS, "")).items()
        },
        "bridge_mappings": networks,
    }


def _bandwidths(at: DocumentPlace, text: str) -> dict[str, dict[str, object]]:
    """Read ``DEVICE:EGRESS:INGRESS;…``; a bandwidth may be empty, and both may be missing."""
    bandwidths: dict[str, dict[str, object]] = {}
    for part in filter(None, text.split(";")):
        device, *rates = part.strip().split(":")
        if len(rates) not in (0, 2) or device in bandwidths:
            at.wrong(part, "give DEVICE:EGRESS:INGRESS, and each device once")
        directions = zip(("egress", "ingress"), rates, strict=False)
        bandwidths[device] = {name: _number(rate) if rate else None for name, rate in directions}
    return bandwidths


def _pairs(at: DocumentPlace, text: str, separator: str = ";") -> dict[str, str]:
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
