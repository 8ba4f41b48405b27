"""Finds a server, an image or a port by its id or its name.

Source: API references of Nova (``GET /servers/{id}`` and ``GET /servers/detail``, microversion
2.47: the flavor is embedded), Glance (``GET /v2/images``) and Neutron (``GET /v2.0/ports``).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.compute_api.answers import (
    GLANCE,
    NEUTRON,
    NOVA,
    NotFoundThere,
    Wanted,
    get,
    part,
)
from cpu_tiers.tools.http.services import Services

Document = Mapping[str, Any]

SERVER_MICROVERSION = "2.47"
"""The first microversion whose servers have their flavor with its extra specs."""


def _by_name(name: str) -> Mapping[str, str]:
    return {"name": name}


def _by_pattern(name: str) -> Mapping[str, str]:
    # Nova compares the name with a regular expression; all_tenants needs an administrator.
    return {"all_tenants": "1", "name": f"^{re.escape(name)}$"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKind:
    """A kind of objects that have an id and a name.

    :param wanted: the things are an object, with its article.
    :param path: the path before the id.
    :param list_path: the path of the list, if it is another.
    :param filters: returns the parameters with which the list has the objects of a name.
    :param is_wrapped: whether an answer with one object has the object under the kind's name.
    :param advice: the command that lists the objects.
    """

    wanted: Wanted
    path: str
    advice: str
    list_path: str = ""
    filters: Callable[[str], Mapping[str, str]] = _by_name
    is_wrapped: bool = True
    microversion: str | None = None

    @property
    def name(self) -> str:
        """Return the word for an object, such as ``server``."""
        return self.wanted.things.partition(" ")[2]

    @property
    def plural(self) -> str:
        """Return the key of an answer with several objects."""
        return f"{self.name}s"

    @property
    def listed(self) -> str:
        """Return the path of the list."""
        return self.list_path or self.path


SERVER = NamedKind(
    wanted=Wanted(NOVA, "a server", "a server"),
    path="/servers",
    advice="openstack server list --all-projects shows the servers",
    list_path="/servers/detail",
    filters=_by_pattern,
    microversion=SERVER_MICROVERSION,
)
IMAGE = NamedKind(
    wanted=Wanted(GLANCE, "an image", "an image"),
    path="/v2/images",
    advice="openstack image list shows the images",
    is_wrapped=False,
)
PORT = NamedKind(
    wanted=Wanted(NEUTRON, "a port", "a port"),
    path="/v2.0/ports",
    advice="openstack port list shows the ports",
)


def find(services: Services, kind: NamedKind, name: str, where: str) -> Document:
    """Return the object with an id, or else the only object with a name.

    :param where: the argument that has the name, for an error.
    :raises InvalidInput: there is no such object, or several have the name.
    :raises ComputeApiUnavailable: the service does not answer.
    """
    return _with_id(services, kind, name) or _with_name(services, kind, name, where)


def find_id(services: Services, kind: NamedKind, name: str, where: str) -> str:
    """Return the id of the object that :func:`find` returns, with the same errors."""
    found: str = part(find(services, kind, name, where), "id", str, kind.listed, kind.wanted)
    return found


def read(services: Services, kind: NamedKind, object_id: str) -> Document:
    """Return the object with an id.

    :raises NotFoundThere: there is no such object.
    :raises ComputeApiUnavailable: the service does not answer.
    """
    path = f"{kind.path}/{quote(object_id, safe='', errors='replace')}"
    body = get(services, path, kind.wanted, kind.microversion)
    if not kind.is_wrapped:
        return body
    found: Document = part(body, kind.name, dict, path, kind.wanted)
    return found


def _with_id(services: Services, kind: NamedKind, name: str) -> Document | None:
    # The path /servers/.. is the path of another object, and /servers/detail that of the list.
    if not name.strip(".") or f"{kind.path}/{name}" == kind.listed:
        return None
    try:
        return read(services, kind, name)
    except NotFoundThere:
        return None


def _with_name(services: Services, kind: NamedKind, name: str, where: str) -> Document:
    path = f"{kind.listed}?{urlencode(kind.filters(name), errors='replace')}"
    body = get(services, path, kind.wanted, kind.microversion)
    objects = part(body, kind.plural, list, path, kind.wanted)
    found = [each for each in objects if isinstance(each, dict) and each.get("name") == name]
    if len(found) == 1:
        return found[0]
    api = kind.wanted.service.name
    if not found:
        raise InvalidInput.of(
            where, f"{name}: {api} has no {kind.name} with this name or id", kind.advice
        )
    ids = ", ".join(str(each.get("id")) for each in found)
    raise InvalidInput.of(
        where,
        f"{name}: {api} has {len(found)} {kind.plural} with this name",
        f"give one of the ids: {ids}",
    )
