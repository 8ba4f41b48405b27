"""Reading the output of the openstack client into images and ports.

The commands take the output of ``openstack image show -f json`` and ``openstack port show
-f json``, and the body of ``GET /allocation_candidates``. Flavors are read by
:mod:`~cpu_tiers.tools.frame.flavor_documents`. The path ``-`` is standard input.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn, cast

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.document import MAX_BYTES, load_json
from cpu_tiers.model.flavor import Image
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


def read_json(path: str, allowed: str = "give the output of -f json") -> Any:
    """Return the JSON document in a file.

    :param allowed: the advice in the error for a file without JSON.
    :raises InvalidInput: the file is not JSON, or an object in it has a key twice.
    """
    try:
        return load_json(read_bytes(path), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InvalidInput.of(path, f"not JSON ({reason})", allowed) from error


def read_image(path: str) -> Image:
    """Return the image in the output of ``openstack image show -f json``.

    :raises InvalidInput: with every fault of the document.
    """
    return image_of(read_object(path, "openstack image show IMAGE -f json"), path)


def image_of(document: Mapping[str, Any], path: str) -> Image:
    """Return the image in a document with the keys of ``openstack image show``.

    :param path: the name of the document in an error.
    :raises InvalidInput: with every fault of the document.
    """
    name = name_of(path, document)
    where = f"image {name}"
    if "properties" not in document:
        raise InvalidInput.of(where, "no properties", "give the output of openstack image show")
    properties = document["properties"]
    if isinstance(properties, Mapping):
        # The client also prints Glance's own fields as properties, and some are not texts.
        properties = {k: v for k, v in properties.items() if k.startswith(_IMAGE_PREFIXES)}
    return Image(name=name, properties=texts(where, properties))


def read_port(path: str) -> Port:
    """Return the port in the output of ``openstack port show -f json``.

    Neutron shows ``resource_request`` only to administrators. Without it the port
    requests no resources.

    :raises InvalidInput: with every fault of the document.
    """
    return port_of(read_object(path, "openstack port show PORT -f json"), path)


def port_of(document: Mapping[str, Any], path: str) -> Port:
    """Return the port in a document with the keys of ``openstack port show``.

    :param path: the name of the document in an error.
    :raises InvalidInput: with every fault of the document.
    """
    port_id = document.get("id")
    if not isinstance(port_id, str) or not port_id.strip():
        raise InvalidInput.of(path, f"the id is {port_id!r}", "give the output of port show")
    faults = FaultList()
    request: object = None
    profile: object = None
    with faults:
        request = _json_in(f"port {port_id}, resource_request", document.get("resource_request"))
    with faults:
        profile = _json_in(f"port {port_id}, binding_profile", document.get("binding_profile"))
        if not isinstance(profile or {}, Mapping):
            faults.add(f"port {port_id}, binding_profile", f"got {profile!r}", "give an object")
    faults.raise_if_any()
    return Port(id=port_id, resource_request=request, binding_profile=cast(Any, profile) or {})


def _json_in(where: str, value: object) -> object:
    """Return a JSON value that an older client may have printed as text; ``None`` if empty."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return load_json(value, object_pairs_hook=_unique, parse_constant=_refuse)
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


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    document = dict(pairs)
    if len(document) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated_keys = sorted(key for key, count in counts.items() if count > 1)
        raise ValueError(f"keys are repeated in an object: {', '.join(repeated_keys)}")
    return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
