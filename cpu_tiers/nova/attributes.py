"""Attributes of Nova's objects that cpu-tiers reads or writes, each verified before use.

Python raises no error if a wrapper sets an attribute that Nova does not read any more.
So each feature of a service names the attributes that it needs, and a service does not
start over a Nova without the attributes.
"""

import dis
import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from cpu_tiers.nova.seams import SeamMismatch, does_not_fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """An attribute that the constructor of a class of Nova sets, or a property of the class.

    :param module: the module with the class.
    :param owner: the name of the class.
    :param why: what cpu-tiers does with the attribute, for the documentation.
    :param kind: the type of the value in a new object. ``None`` if a new object would do more
        than keep values: then only the code of the constructor is looked at.
    :param arguments: the arguments of the constructor.
    """

    module: str
    owner: str
    name: str
    why: str
    kind: type | None = None
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the full name of the attribute."""
        return f"{self.module}.{self.owner}.{self.name}"

    def verify(self) -> None:
        """Check that objects of the class have the attribute, with a value of the expected type.

        :raises SeamMismatch: the objects do not have it, or Nova has no such class.
        """
        try:
            owner = getattr(importlib.import_module(self.module), self.owner)
        except (AttributeError, ModuleNotFoundError) as error:
            raise SeamMismatch(does_not_fit(f"{self} does not exist")) from error
        if self.kind is None:
            if not hasattr(owner, self.name) and self.name not in _assigned(owner.__init__):
                raise SeamMismatch(does_not_fit(f"{self} does not exist"))
            return
        try:
            value = getattr(owner(*self.arguments), self.name)
        except (AttributeError, TypeError) as error:
            raise SeamMismatch(does_not_fit(f"{self} does not exist ({error})")) from error
        if not isinstance(value, self.kind):
            expected, kind = self.kind.__name__, type(value).__name__
            raise SeamMismatch(
                does_not_fit(f"{self} was expected to be of type {expected}, but it is a {kind}")
            )


def _assigned(constructor: Any) -> frozenset[str]:
    """Return the names of the attributes that a constructor assigns, of whatever object."""
    code = getattr(inspect.unwrap(constructor), "__code__", None)
    if code is None:  # the class has no constructor of its own
        return frozenset()
    instructions = dis.get_instructions(code)
    return frozenset(each.argval for each in instructions if each.opname == "STORE_ATTR")


_REQUEST = "nova.scheduler.utils", "ResourceRequest"
_HOST = "nova.scheduler.host_manager", "HostState"


def in_class(
    place: tuple[str, str], name: str, why: str, kind: type | None = None, *arguments: str
) -> Attribute:
    """Return an attribute of a class.

    :param place: the module and the name of the class.
    """
    module, owner = place
    return Attribute(
        module=module, owner=owner, name=name, why=why, kind=kind, arguments=arguments
    )


SAME_SUBTREE = in_class(_REQUEST, "_same_subtree", "sets of groups are added", list)
"""For each translator, and for the NUMA query."""

ROOT_REQUIRED = in_class(_REQUEST, "_root_required", "traits of the root provider are added", set)
"""For the traits of hosts, and for the NUMA query."""

GROUPS = in_class(_REQUEST, "_rg_by_id", "groups are read, copied, added and removed", dict)
"""For the traits of ports, and for the NUMA query."""

OF_NUMA_QUERY = (
    SAME_SUBTREE,
    ROOT_REQUIRED,
    GROUPS,
    in_class(_REQUEST, "_root_forbidden", "hosts with and without NUMA nodes are told apart", set),
    in_class(_REQUEST, "cpu_pinning_requested", "set to False: a fallback query is sent", bool),
    in_class(_HOST, "pci_stats", "has the free PCI devices of the NUMA nodes of a host"),
    in_class(("nova.pci.stats", "PciDeviceStats"), "pools", "tells how many devices a node has"),
)

CANDIDATES = in_class(
    _HOST,
    "allocation_candidates",
    "the first candidate is the candidate that Nova has claimed; the NUMA query replaces the list",
    list,
    "host",
    "node",
    "cell",
)
"""For the weigher and the NUMA query."""
