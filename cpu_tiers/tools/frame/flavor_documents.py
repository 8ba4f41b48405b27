"""Reading flavors: the output of ``openstack flavor show`` and ``flavor list --long``.

Both are read with ``-f json``, and so are the flavors of Nova's API.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.extra_specs.server_faults import faults_of_any_size
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.documents import name_of, read_json, read_object, texts

Check = Callable[[Flavor], Iterable[Fault]]
"""Returns the faults of a flavor with valid sizes."""

_EPHEMERAL = "OS-FLV-EXT-DATA:ephemeral"

_SIZES: Mapping[str, tuple[str, Any]] = {
    "vcpus": ("vcpus", None),
    "ram": ("memory_mb", None),
    "disk": ("root_gb", 0),
    _EPHEMERAL: ("ephemeral_gb", 0),
    "swap": ("swap_mb", 0),
}
"""Keys of ``openstack flavor show``, with the name of the field in Nova and the default value."""

_COLUMNS = {
    "Name": "name",
    "VCPUs": "vcpus",
    "RAM": "ram",
    "Disk": "disk",
    "Ephemeral": _EPHEMERAL,
    "Swap": "swap",
    "Properties": "properties",
}
"""Columns of ``openstack flavor list --long``, with the key of ``flavor show``."""

_SHOW = "openstack flavor show FLAVOR -f json"
_LIST = "openstack flavor list --long -f json"


def _no_check(_flavor: Flavor) -> Iterable[Fault]:
    return ()


def read_flavor(path: str) -> Flavor:
    """Return the flavor in the output of ``openstack flavor show -f json``.

    :raises InvalidInput: with every fault of the document.
    """
    return flavor_of(read_object(path, _SHOW), path)


def read_flavors(path: str, faults: FaultList, check: Check = _no_check) -> Iterator[Flavor]:
    """Yield the flavors in the output of ``openstack flavor show`` or ``flavor list --long``.

    :param faults: collects the faults of the document; a flavor with such faults is left out.
    :param check: as for :func:`flavor_of`.
    """
    document = faults.read(read_json, path)
    if isinstance(document, Mapping) and isinstance(document.get("flavors"), list):
        document = document["flavors"]  # of Nova's API
    if isinstance(document, Mapping):
        rows = [(path, document)]
    elif isinstance(document, list):
        rows = [(f"{path}, flavor {number}", row) for number, row in enumerate(document, start=1)]
    else:
        if not faults.faults:
            given = f"a JSON {type(document).__name__}"
            faults.add(path, given, f"give the output of {_SHOW} or of {_LIST}")
        return
    for where, row in rows:
        flavor = faults.read(_from_row, where, row, check)
        if flavor is not None:
            yield flavor


def _from_row(where: str, row: object, check: Check) -> Flavor:
    if not isinstance(row, Mapping):
        raise InvalidInput.of(where, f"a JSON {type(row).__name__}", f"give the output of {_LIST}")
    if "Name" not in row:
        return flavor_of(row, where, check)
    if "Properties" not in row:
        raise InvalidInput.of(where, "no column Properties", f"give the output of {_LIST}")
    document = {_COLUMNS.get(str(key), str(key)): value for key, value in row.items()}
    return flavor_of(document, where, check)


def flavor_of(document: Mapping[str, Any], where: str, check: Check = _no_check) -> Flavor:
    """Return the flavor in the output of ``openstack flavor show``, or in Nova's API.

    :param where: the name of the document in an error.
    :param check: returns further faults of a flavor. If a size is out of range, the error has the
        faults that do not depend on the size, too.
    :raises InvalidInput: with every fault of the document.
    """
    document = _shown(document, where)
    name = name_of(where, document)
    faults = FaultList()
    sizes = {field: document.get(key, default) for key, (field, default) in _SIZES.items()}
    if sizes["swap_mb"] == "":  # Older clients, and Nova before microversion 2.75, give no 0.
        sizes["swap_mb"] = 0
    extra_specs: dict[str, str] = {}
    with faults:
        extra_specs = texts(f"flavor {name}", _parsed(document.get("properties", {})))
    with faults:
        flavor = Flavor(name=name, **sizes, extra_specs=extra_specs)
    if faults.faults:
        faults.faults += faults_of_any_size(name, sizes, extra_specs, check)
        faults.raise_if_any()
    return flavor


def _shown(document: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return a flavor with the keys of ``openstack flavor show``.

    A flavor of Nova's API has ``extra_specs``, and the flavor that is embedded in a server has
    ``original_name`` and ``ephemeral``, too.

    :raises InvalidInput: the document has the extra specs twice.
    """
    if isinstance(document.get("flavor"), Mapping):
        document = document["flavor"]
    if "extra_specs" in document and "properties" in document:
        raise InvalidInput.of(where, "extra_specs and properties", "give one of them")
    names = {"extra_specs": "properties", "original_name": "name", "ephemeral": _EPHEMERAL}
    return {names.get(key, key): value for key, value in document.items()}


def _parsed(properties: object) -> object:
    """Return the properties as an object; clients before 4.0 print a text ``key='value', …``."""
    if properties == "":
        return {}
    pair = r"([^=',\s]+)='([^']*)'"
    if isinstance(properties, str) and re.fullmatch(rf"{pair}(, {pair})*", properties):
        return dict(re.findall(pair, properties))
    return properties
