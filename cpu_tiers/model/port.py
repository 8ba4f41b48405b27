"""A Neutron port, and the request groups of its ``resource_request``.

The field has two forms. The flat form is a request for a single provider::

    {"resources": {CLASS: AMOUNT}, "required": [TRAIT]}

The form of Neutron's extension ``port-resource-request-groups`` is a request for
several providers in the same subtree::

    {"request_groups": [{"id": ID, "resources": {…}, "required": […]}],
     "same_subtree": [ID]}

The form is checked; classes, amounts and traits are taken from Neutron without
interpretation (decision D7). An unknown key is refused, because it could restrict the
providers for the port. ``required`` may also contain ``!TRAIT`` for a forbidden trait.
``in:TRAIT,TRAIT`` demands any of these traits, for a network on several physical
networks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.names import is_resource_class, is_trait
from cpu_tiers.model.request import GroupDraft, RequestGroup, SameSubtree

_FLAT = ("resources", "required")
_GROUPED = ("request_groups", "same_subtree")

_ID = r"[A-Za-z0-9_-]{1,64}"
"""The suffixes of request groups that Placement accepts."""


class PortRequest(NamedTuple):
    """The request groups of a port; none for a port that requests no resources.

    :param groups: the suffix and the ``requester_id`` of a group are the port's id in
        the flat form, and the group's id in the form with ``request_groups``.
    :param is_grouped: whether the field has the form with ``request_groups``.
    """

    groups: tuple[RequestGroup, ...] = ()
    same_subtree: tuple[SameSubtree, ...] = ()
    is_grouped: bool = False


def read_port_request(port_id: str, request: object) -> PortRequest:
    """Read the ``resource_request`` of a port.

    As in Nova, an amount of 0 requests nothing.

    :raises InvalidInput: with every fault and its place.
    """
    if request is None:
        return PortRequest()
    faults = FaultList()
    at = DocumentPlace(f"port {port_id}", faults) / "resource_request"
    body = at.of(request, dict)
    is_grouped = any(key in body for key in _GROUPED)
    if is_grouped:
        at.check_keys(body, _GROUPED)
        groups = _groups(at, at.get(body, "request_groups", list))
        together = _together(at, at.get(body, "same_subtree", list), groups)
    else:
        at.check_keys(body, _FLAT)
        groups, together = {port_id: _group(at, body, port_id)}, ()
    # An id becomes a suffix in the query only if its port requests anything.
    if any(_requests_something(group) for group in groups.values()):
        for name in groups:
            if not re.fullmatch(_ID, name):
                at.wrong(name, "an id is up to 64 letters, digits, _ and -")
    faults.raise_if_any()
    return _port_request(groups.values(), together, is_grouped=is_grouped)


def _port_request(
    groups: Iterable[RequestGroup], together: Iterable[str], *, is_grouped: bool
) -> PortRequest:
    asking = tuple(group for group in groups if _requests_something(group))
    suffixes = {group.suffix for group in asking}
    subtree = tuple(suffix for suffix in together if suffix in suffixes)
    # Placement answers 400 to a group without resources that is in no same_subtree.
    alone = [
        (group.suffix,) for group in asking if not group.resources and group.suffix not in subtree
    ]
    return PortRequest(
        groups=asking,
        same_subtree=tuple(map(SameSubtree, filter(None, (subtree, *alone)))),
        is_grouped=is_grouped,
    )


def _requests_something(group: RequestGroup) -> bool:
    return bool(group.resources) or group.has_traits


def _groups(at: DocumentPlace, bodies: Iterable[object]) -> dict[str, RequestGroup]:
    groups: dict[str, RequestGroup] = {}
    for index, given in enumerate(bodies):
        place = at / f"request_groups[{index}]"
        body = place.of(given, dict)
        if body is not given:
            continue
        place.check_keys(body, ("id", *_FLAT))
        name = (place / "id").of(body.get("id"), str)
        if name in groups:
            (place / "id").wrong(name, "give each group an id of its own")
        groups[name] = _group(place, body, name)
    return groups


def _group(at: DocumentPlace, body: Mapping[str, Any], name: str) -> RequestGroup:
    draft = GroupDraft()
    draft.requester_id = name
    for resource_class, amount in at.get(body, "resources", dict).items():
        place = at / f"resources {resource_class}"
        if not isinstance(resource_class, str) or not is_resource_class(resource_class):
            place.wrong(resource_class, "give a class of os-resource-classes, or CUSTOM_…")
        if place.amount(amount, 0):
            draft.resources[resource_class] = amount
    for text in at.get(body, "required", list):
        _add_traits(at / "required", text, draft)
    for trait in sorted(draft.required & draft.forbidden):
        (at / "required").wrong(trait, "require a trait, or forbid it")
    return draft.freeze(name)


def _add_traits(at: DocumentPlace, given: object, draft: GroupDraft) -> None:
    text = at.of(given, str)
    if text is not given:
        return
    operator, traits = split_requirement(text)
    if not all(map(is_trait, traits)):
        at.wrong(text, "give a trait of os-traits, or CUSTOM_…; or in: and several of them")
    else:
        require(draft, operator, traits)


def split_requirement(text: str) -> tuple[str, frozenset[str]]:
    """Return the operator and the traits of an entry of ``required``.

    :returns: the operator is ``in:``, ``!`` or empty.
    """
    operator = next((o for o in ("in:", "!") if text.startswith(o)), "")
    names = text.removeprefix(operator)
    return operator, frozenset(names.split(",") if operator == "in:" else [names])


def require(draft: GroupDraft, operator: str, traits: frozenset[str]) -> None:
    """Add the traits of an entry of ``required`` to a group."""
    if operator == "!":
        draft.forbidden |= traits
    elif len(traits) > 1:
        draft.any_of.add(traits)
    else:
        draft.required |= traits


def _together(
    at: DocumentPlace, given: Iterable[object], groups: Mapping[str, RequestGroup]
) -> tuple[str, ...]:
    for suffix in given:
        if not isinstance(suffix, str) or suffix not in groups:
            (at / "same_subtree").wrong(suffix, "name a group of this port")
    return tuple(dict.fromkeys(map(str, given)))


# cached_property needs a __dict__, which a subclass of a NamedTuple has and a NamedTuple has not.
class _Port(NamedTuple):
    id: str
    resource_request: object = None
    binding_profile: Mapping[str, object] = MappingProxyType({})
    vnic_type: str = "normal"


class Port(_Port):
    """A port of a server.

    :param id: the uuid of the port.
    :param resource_request: the field of this name from Neutron. It is read anew for
        each operation, because it may change in Neutron. ``None`` if the port requests
        no resources, or if this Neutron has no such field.
    :param binding_profile: ``binding:profile``; its key ``allocation`` names the
        providers that serve the port.
    :param vnic_type: ``binding:vnic_type``, such as ``remote-managed``.
    """

    @cached_property
    def request(self) -> PortRequest:
        """The request groups of the port.

        :raises InvalidInput: see :func:`~cpu_tiers.model.port.read_port_request`.
        """
        return read_port_request(self.id, self.resource_request)
