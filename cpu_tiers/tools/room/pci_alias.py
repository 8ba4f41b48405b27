"""The PCI aliases of nova.conf, and the devices that a flavor requests by aliases.

Source: Nova, ``nova/pci/request.py``, ``nova/compute/pci_placement_translator.py`` and
``RequestSpec.generate_request_groups_from_pci_requests`` of Nova 31 to 34.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import os_resource_classes

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.document import load_json
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import is_trait
from cpu_tiers.model.request import RequestGroup

ALIAS = "pci_passthrough:alias"
_OPTION = "nova.conf, [pci] alias"


class PciAlias(NamedTuple):
    """What a device of an alias is in Placement."""

    resource_class: str
    traits: frozenset[str] = frozenset()


def read_pci_aliases(texts: Iterable[str]) -> dict[str, PciAlias]:
    """Return the aliases of nova.conf by name.

    :raises InvalidInput: with every alias that Nova refuses with ``pci_in_placement``.
    """
    faults, aliases = FaultList(), dict[str, PciAlias]()
    for text in texts:
        with faults:
            name, alias = _read(text)
            if name in aliases:
                allowed = "give each alias once, as pci_in_placement demands"
                raise InvalidInput.of(_OPTION, f"{name} twice", allowed)
            aliases[name] = alias
    faults.raise_if_any()
    return aliases


def _read(text: str) -> tuple[str, PciAlias]:
    try:
        body: Any = load_json(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, Mapping) or not all(isinstance(v, str) for v in body.values()):
        allowed = 'write {"name": "a", "vendor_id": "10de", "product_id": "20b0"}'
        raise InvalidInput.of(_OPTION, f"got {text[:60]!r}", allowed)
    name, resource_class = str(body.get("name", "")).strip(), body.get("resource_class")
    vendor, product = body.get("vendor_id"), body.get("product_id")
    if not name or not (resource_class or (vendor and product)):
        allowed = "give the name, and a resource_class or both of vendor_id and product_id"
        raise InvalidInput.of(_OPTION, f"got {text[:60]!r}", allowed)
    named = resource_class or f"CUSTOM_PCI_{vendor}_{product}"
    traits = filter(None, body.get("traits", "").split(","))
    return name, PciAlias(_class_of(named), frozenset(map(_trait_of, traits)))


def _class_of(name: str) -> str:
    upper = name.upper()
    is_known = upper in os_resource_classes.STANDARDS or os_resource_classes.is_custom(upper)
    return upper if is_known else _custom(name)


def _trait_of(name: str) -> str:
    is_known = is_trait(name) or (is_trait(name.upper()) and name.upper().startswith("CUSTOM_"))
    return (name if is_trait(name) else name.upper()) if is_known else _custom(name)


def _custom(name: str) -> str:
    return f"CUSTOM_{re.sub('[^0-9A-Z]+', '_', name.upper())}"


def requested_devices(flavor: Flavor) -> dict[str, int]:
    """Return the number of devices that a flavor requests, by the name of the alias.

    :raises InvalidInput: the extra spec is malformed.
    """
    devices: dict[str, int] = {}
    text = flavor.extra_specs.get(ALIAS, "")
    for part in filter(None, text.split(",")):
        name, _, count = part.partition(":")
        if not re.fullmatch(r"\s*[0-9]{1,4}\s*", count, re.ASCII):
            allowed = "give NAME:COUNT, with commas between several"
            raise InvalidInput.of(flavor.spec(ALIAS), f"got {text!r}", allowed)
        devices[name.strip()] = devices.get(name.strip(), 0) + int(count)
    return devices


def device_groups(flavor: Flavor, aliases: Mapping[str, PciAlias]) -> tuple[RequestGroup, ...]:
    """Return the request groups of a flavor's devices: as by Nova, one for each device.

    A device with an alias that nova.conf does not have is left out.
    """
    requested = [
        aliases[name]
        for name, count in requested_devices(flavor).items()
        if name in aliases
        for _ in range(count)
    ]
    return tuple(
        RequestGroup(
            suffix=f"_PCI{number}", resources={alias.resource_class: 1}, required=alias.traits
        )
        for number, alias in enumerate(requested, start=1)
    )
