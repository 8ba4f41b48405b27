"""Reading the output of the openstack client into flavors, images and ports.

The commands take the output of ``openstack image show -f json`` and ``openstack port show
-f json``, and the body of ``GET /allocation_candidates``; flavors as ``openstack flavor show``,
``openstack flavor list --long`` and Nova's API have them. The path ``-`` is standard input.
A function that returns a flavor, an image or a port raises :class:`~cpu_tiers.errors.InvalidInput`
with every fault of the document. ``path`` or ``where`` is the name of the document in an error.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn, cast

from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.extra_specs.server_faults import faults_of_any_size
from cpu_tiers.model.document import MAX_BYTES, load_json
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port

_IMAGE_PREFIXES = ("hw_", "trait:", "os_secure_boot")


def read_bytes(path: str) -> bytes:
    """Return the content of a file.

    :raises InvalidInput: the file cannot be read, or is longer than ``MAX_BYTES``.
    """
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            # A device or a pipe may have no end.
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput.of(
            path, f"cannot be read ({reason})", "name a readable file"
        ) from error
    if len(content) > MAX_BYTES:
        raise InvalidInput.of(path, "a longer file", f"a file has at most {MAX_BYTES} bytes")
    return content


def read_text(path: str) -> str:
    """Return the text in a file in UTF-8, with or without a byte order mark.

    :raises InvalidInput: the file cannot be read, or is not in UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeError as error:
        raise InvalidInput.of(path, "no text in UTF-8", "save the file as UTF-8") from error


def read_json(path: str, allowed: str = "give the output of -f json") -> Any:
    """Return the JSON document in a file.

    :param allowed: the advice in the error for a file without JSON.
    :raises InvalidInput: the file is not JSON, or an object in it has a key twice.
    """
    try:
        return _load(read_bytes(path))
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InvalidInput.of(path, f"not JSON ({reason})", allowed) from error


def read_image(path: str) -> Image:
    """Return the image in the output of ``openstack image show -f json``."""
    return image_of(read_object(path, "openstack image show IMAGE -f json"), path)


def image_of(document: Mapping[str, Any], path: str) -> Image:
    """Return the image in a document with the keys of ``openstack image show``."""
    name = name_of(path, document)
    where = f"image {name}"
    if "properties" not in document:
        raise InvalidInput.of(where, "no properties", "give the output of openstack image show")
    properties = document["properties"]
    if isinstance(properties, Mapping):
        # The client also prints Glance's own fields as properties, and some are not texts.
        properties = {
            # A newer client prints the texts "true" and "false" of Glance as booleans of JSON.
            key: str(value).lower()
            if isinstance(value, bool) and not key.startswith("trait:")
            else value
            for key, value in properties.items()
            if key.startswith(_IMAGE_PREFIXES)
        }
    disk_format = document.get("disk_format")
    return Image(
        name=name,
        properties=texts(where, properties),
        disk_format=disk_format if isinstance(disk_format, str) else "",
    )


def read_port(path: str) -> Port:
    """Return the port in the output of ``openstack port show -f json``.

    Neutron shows ``resource_request`` only to administrators. Without it the port
    requests no resources.
    """
    return port_of(read_object(path, "openstack port show PORT -f json"), path)


def port_of(document: Mapping[str, Any], path: str) -> Port:
    """Return the port in a document with the keys of ``openstack port show``."""
    port_id = document.get("id")
    if not isinstance(port_id, str) or not port_id.strip():
        raise InvalidInput.of(path, f"the id is {port_id!r}", "give the output of port show")
    faults = FaultList()
    request, profile = (
        faults.read(_json_in, f"port {port_id}, {key}", document.get(key))
        for key in ("resource_request", "binding_profile")
    )
    if not isinstance(profile or {}, Mapping):
        faults.add(f"port {port_id}, binding_profile", f"got {profile!r}", "give an object")
    faults.raise_if_any()
    return Port(
        id=port_id,
        resource_request=request,
        binding_profile=cast(Any, profile) or {},
        vnic_type=str(document.get("binding_vnic_type") or "normal"),
    )


def _json_in(where: str, value: object) -> object:
    """Return a JSON value that an older client may have printed as text; ``None`` if empty."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return _load(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.of(
            where, f"got {value!r}", "give a JSON object, as newer openstack clients print it"
        ) from error


def name_of(path: str, document: Mapping[str, Any]) -> str:
    """Return the name of a flavor or an image.

    :raises InvalidInput: the name is no text, or empty.
    """
    name = document.get("name", path)
    if isinstance(name, str) and name.strip():
        return name
    raise InvalidInput.of(path, f"the name is {name!r}", "give a name")


def read_object(path: str, command: str) -> Mapping[str, Any]:
    """Return the JSON object in a file.

    :param command: the command whose output is expected, for the error.
    :raises InvalidInput: the file is not a JSON object.
    """
    document = read_json(path)
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise InvalidInput.of(path, f"a JSON {kind}", f"give the output of {command}")
    return document


def texts(where: str, properties: object) -> dict[str, str]:
    """Return the properties as texts; a number becomes the text of its value.

    :raises InvalidInput: with every property that is neither a text nor a number.
    """
    if not isinstance(properties, Mapping):
        given = f"properties are {str(properties)[:40]!r}"
        allowed = "give a JSON object, as newer openstack clients print it"
        raise InvalidInput.of(where, given, allowed)
    faults = FaultList()
    for key, value in properties.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            faults.add(f"{where}, property {key}", f"got {value!r}", "give a text")
    faults.raise_if_any()
    return {key: str(value) for key, value in properties.items()}


def _load(text: str | bytes) -> Any:
    return load_json(text, object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated_keys = sorted(key for key, count in counts.items() if count > 1)
        raise ValueError(f"keys are repeated in an object: {', '.join(repeated_keys)}")
    return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


Check = Callable[[Flavor], Iterable[Fault]]
"""Returns the faults of a flavor with valid sizes."""

_EPHEMERAL = "OS-FLV-EXT-DATA:ephemeral"

_SIZES: Mapping[str, tuple[str, Any]] = {
    "vcpus": ("vcpus", 1),
    "ram": ("memory_mb", 1),
    "disk": ("root_gb", 0),
    _EPHEMERAL: ("ephemeral_gb", 0),
    "swap": ("swap_mb", 0),
}
"""Keys of ``openstack flavor show``, with the name of the field in Nova and the default value.

A flavor without ``vcpus`` or ``ram`` has a fault."""

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


def no_check(_flavor: Flavor) -> Iterable[Fault]:
    """Return no further faults."""
    return ()


def read_flavor(path: str) -> Flavor:
    """Return the flavor in the output of ``openstack flavor show -f json``."""
    return flavor_of(read_object(path, _SHOW), path)


def read_flavors(path: str, faults: FaultList, check: Check = no_check) -> Iterator[Flavor]:
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


def flavor_of(document: Mapping[str, Any], where: str, check: Check = no_check) -> Flavor:
    """Return the flavor in the output of ``openstack flavor show``, or in Nova's API.

    :param check: returns further faults of a flavor. If a size is out of range, the error has the
        faults that do not depend on the size, too.
    """
    document = _shown(document, where)
    name = name_of(where, document)
    faults = FaultList()
    sizes = {field: document.get(key, default) for key, (field, default) in _SIZES.items()}
    if sizes["swap_mb"] == "":  # Older clients, and Nova before microversion 2.75, give no 0.
        sizes["swap_mb"] = 0
    properties = _parsed(document.get("properties", {}))
    extra_specs = faults.read(texts, f"flavor {name}", properties) or {}
    for key in ("vcpus", "ram"):
        if key not in document:
            faults.add(f"flavor {name}", f"no {key}", f"give the output of {_SHOW}")
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
