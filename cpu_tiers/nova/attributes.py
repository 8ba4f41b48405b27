"""Attributes of Nova's objects that cpu-tiers reads or writes, each verified before use.

Python raises no error if a wrapper sets an attribute that Nova does not read any more.
So each feature of a service names the attributes that it needs, and a service does not
start over a Nova without the attributes.
"""

import dis
import inspect
import pkgutil
from dataclasses import dataclass
from typing import Any

from cpu_tiers.nova.seams import SeamMismatch, does_not_fit


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that the constructor of a class of Nova sets, or a property of the class.

    :param owner: the class, such as ``nova.scheduler.utils:ResourceRequest``.
    :param why: what cpu-tiers does with the attribute, for the documentation.
    :param kind: the type of the value in a new object. ``None`` if a new object would do more
        than keep values: then only the code of the constructor is looked at.
    :param arguments: the arguments of the constructor.
    """

    owner: str
    name: str
    why: str
    kind: type | None = None
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the full name of the attribute."""
        return f"{self.owner.replace(':', '.')}.{self.name}"

    def verify(self) -> None:
        """Check that objects of the class have the attribute, with a value of the expected type.

        :raises SeamMismatch: the objects do not have it, or Nova has no such class.
        """
        try:
            owner = pkgutil.resolve_name(self.owner)
            if self.kind is None:
                if not hasattr(owner, self.name) and self.name not in _assigned(owner.__init__):
                    raise AttributeError
                return
            value = getattr(owner(*self.arguments), self.name)
        except (AttributeError, ModuleNotFoundError, TypeError) as error:
            raise SeamMismatch(does_not_fit(f"{self} does not exist")) from error
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
