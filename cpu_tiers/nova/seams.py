"""Seams: functions of Nova that cpu-tiers wraps or relies on, each verified before use.

A seam is installed once, even if Nova loads several classes of cpu-tiers in one
service. If the parameters of a function in the installed Nova differ from the
parameters of its seam, the service stops at its start with an error that names the
function. Without the check, a wrapper could silently have no effect.
"""

import importlib
import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from cpu_tiers.errors import CpuTiersError

LOG = logging.getLogger(__name__)

_INSTALLING = threading.Lock()

_MARK = "__cpu_tiers_seams__"
"""The attribute of a wrapper with all seams around its function. ``functools.wraps`` of a
wrapper from another tool, such as a profiler, copies the attribute to its own wrapper."""


class SeamMismatch(CpuTiersError):
    """A function of the installed Nova is missing, or its parameters differ from a seam's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A function of Nova and the wrapper that cpu-tiers puts around the function.

    :param module: the module with the function, such as ``nova.scheduler.utils``.
    :param path: the qualified name of the function in the module, such as
        ``ResourceRequest.from_request_spec``.
    :param parameters: the function's parameters as its ``def`` has them, without annotations:
        with ``self`` or ``cls``, with defaults (``limits=None``), and with ``*`` and ``/``.
    :param wrap: takes the original function and returns the wrapper. ``None`` for a
        function that cpu-tiers calls or overrides, and therefore only verifies.
    :param other_parameters: the parameters that the function has in other releases of Nova.
        The wrapper works with all of them.
    """

    module: str
    path: str
    parameters: tuple[str, ...]
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    other_parameters: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        """Return the full name of Nova's function."""
        return f"{self.module}.{self.path}"


def install(seams: Sequence[Seam], *, level: int = logging.INFO) -> None:
    """Wrap each function of ``seams``, unless the function has this wrapper already.

    Several threads, native or green, may call this function at the same time.

    :param level: the log level of the line about each wrapped function.
    :raises SeamMismatch: a seam does not fit the installed Nova. No function is wrapped.
    """
    with _INSTALLING:
        # All seams first, so that a mismatch leaves every function of Nova as it was.
        verify(seams)
        for seam in seams:
            _wrap(seam, level)


def verify(seams: Sequence[Seam]) -> None:
    """Check that the functions of ``seams`` exist with the expected parameters.

    :raises SeamMismatch: a seam does not fit the installed Nova.
    """
    for seam in seams:
        _find(seam)


def _wrap(seam: Seam, level: int) -> None:
    """Wrap the function of a seam. Several seams may be around the same function."""
    if seam.wrap is None:
        return
    owner, name, attribute = _find(seam)
    function = _function(attribute)
    installed: tuple[Seam, ...] = getattr(function, _MARK, ())
    if seam in installed:
        return
    wrapper = seam.wrap(function)
    setattr(wrapper, _MARK, (*installed, seam))
    # A wrapper in place of a class method or a static method has to be of that kind, too, or
    # Nova would call the wrapper without the class, or with an instance too many.
    setattr(owner, name, wrapper if function is attribute else type(attribute)(wrapper))
    LOG.log(level, "cpu-tiers wraps %s of Nova %s", seam, version("nova"))


def _find(seam: Seam) -> tuple[Any, str, Any]:
    """Return the class or module with a seam's function, the function's name, and its attribute.

    :raises SeamMismatch: the function does not exist, or has different parameters.
    """
    *classes, name = seam.path.split(".")
    try:
        owner: Any = importlib.import_module(seam.module)
        for class_name in classes:
            owner = getattr(owner, class_name)
        # getattr would bind a class method to its class and hide the kind of the attribute.
        attribute = inspect.getattr_static(owner, name)
    except (AttributeError, ModuleNotFoundError) as error:
        raise SeamMismatch(_message(seam, "it does not exist")) from error
    # The innermost function is Nova's own: a wrapper, of cpu-tiers or of another tool, may
    # have any parameters.
    parameters = _parameters(inspect.unwrap(_function(attribute)))
    if parameters not in map(", ".join, (seam.parameters, *seam.other_parameters)):
        raise SeamMismatch(_message(seam, f"its parameters are {parameters}"))
    return owner, name, attribute


def _parameters(function: Callable[..., Any]) -> str:
    """Return the parameters of a function as its ``def`` has them, without annotations.

    Kinds and defaults count: a wrapper hands on the default that it was written with, and
    passes arguments by position.
    """
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return text.removeprefix("(").removesuffix(")")


def _function(attribute: Any) -> Any:
    """Return the function of a class method or static method; a plain function unchanged."""
    return attribute.__func__ if isinstance(attribute, classmethod | staticmethod) else attribute


def _message(seam: Seam, difference: str) -> str:
    expected = " or ".join(map(", ".join, (seam.parameters, *seam.other_parameters)))
    return (
        f"cpu-tiers does not fit Nova {version('nova')}: {seam} was expected with the "
        f"parameters {expected}, but {difference}. Install a release of cpu-tiers "
        "for this Nova, or take cpu-tiers out of nova.conf"
    )
