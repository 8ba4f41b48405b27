"""Seams: functions of Nova that cpu-tiers wraps or relies on, each verified before use.

A service installs the seams of its features (:mod:`cpu_tiers.nova.features`). A seam
is installed once, even if Nova loads several classes of cpu-tiers in one service. If
the parameters of a function in the installed Nova differ from the parameters of its
seam, the service stops at its start with an error that names the function. Without
the check, a wrapper could silently have no effect.
"""

import functools
import importlib
import inspect
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from types import FunctionType
from typing import Any

from cpu_tiers.errors import CpuTiersError

_CHANGING = threading.RLock()

_MARK = "__cpu_tiers_seams__"
"""The attribute of a wrapper with a :class:`_Wrapper` for each seam around its function, the
innermost first. ``functools.wraps`` of a wrapper from another tool, such as a profiler, copies
the attribute to its own wrapper."""


class SeamMismatch(CpuTiersError):
    """The installed Nova lacks a function or an attribute, or has it in another form."""


class SeamCovered(CpuTiersError):
    """A wrapper cannot be removed, because another tool has wrapped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A function of Nova and the wrapper that cpu-tiers puts around the function.

    ``docs/reference/seams.toml`` says why, and what would end the wrapper.

    :param module: the module with the function, such as ``nova.scheduler.utils``.
    :param path: the qualified name of the function in the module, such as
        ``ResourceRequest.from_request_spec``.
    :param parameters: the function's parameters as its ``def`` has them, without annotations:
        ``self, spec_obj, limits=None``, also with ``*`` and ``/``.
    :param wrap: takes the original function and returns the wrapper. ``None`` for a
        function that cpu-tiers calls or overrides, and therefore only verifies.
    :param other_parameters: the parameters that the function has in other releases of Nova.
        The wrapper works with all of them.
    :param layer: the place among several wrappers around the same function: the wrapper of the
        lowest layer is the innermost, the wrapper of the highest layer is called first.
    """

    module: str
    path: str
    parameters: str
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    other_parameters: tuple[str, ...] = ()
    layer: int = 0

    def __str__(self) -> str:
        """Return the full name of Nova's function."""
        return f"{self.module}.{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrapper:
    """An installed wrapper.

    :param before: the attribute of Nova's class or module that the wrapper replaced.
    """

    seam: Seam
    function: Callable[..., Any]
    before: Any


def install(seams: Iterable[Seam]) -> tuple[Seam, ...]:
    """Wrap each function of ``seams``, unless the function has this wrapper already.

    Several threads, native or green, may call this function at the same time.

    :returns: the seams whose functions were wrapped now.
    :raises SeamMismatch: a seam does not fit the installed Nova. No function is wrapped.
    """
    by_layer = sorted(seams, key=lambda seam: seam.layer)
    with _CHANGING:
        # All seams first, so that a mismatch leaves every function of Nova as it was.
        verify(by_layer)
        return tuple(seam for seam in by_layer if seam.wrap and _wrap(seam, seam.wrap))


def remove(seams: Iterable[Seam]) -> None:
    """Take the wrappers of ``seams`` away again. Other seams around the same functions stay.

    :raises SeamCovered: another tool has wrapped a function after cpu-tiers.
    """
    removed = frozenset(seams)
    with _CHANGING:
        for seam in removed:
            _unwrap(seam, removed)


def is_installed(seam: Seam) -> bool:
    """Tell whether the function of a seam has the wrapper of the seam."""
    return seam in [wrapper.seam for wrapper in _wrappers(_find(seam)[2])]


def function_of(seam: Seam) -> Any:
    """Return Nova's own function of a seam, without any wrapper.

    :raises SeamMismatch: the function does not exist, or has different parameters.
    """
    return _innermost(_find(seam)[2])


def verify(seams: Iterable[Seam]) -> None:
    """Check that the functions of ``seams`` exist with the expected parameters.

    :raises SeamMismatch: a seam does not fit the installed Nova.
    """
    for seam in seams:
        _find(seam)


def _wrap(seam: Seam, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Wrap the function of a seam; return ``False`` if the function has the wrapper already."""
    owner, name, attribute = _find(seam)
    installed = _wrappers(attribute)
    if seam in [wrapper.seam for wrapper in installed]:
        return False
    function = wrap(_original(owner, attribute))
    new = _Wrapper(seam=seam, function=function, before=attribute)
    setattr(function, _MARK, (*installed, new))
    # A wrapper in place of a class method or a static method has to be of that kind, too, or
    # Nova would call the wrapper without the class, or with an instance too many.
    kinds = [kind for kind in (classmethod, staticmethod) if isinstance(attribute, kind)]
    setattr(owner, name, kinds[0](function) if kinds else function)
    return True


def _original(owner: Any, attribute: Any) -> Callable[..., Any]:
    """Return the function that a wrapper calls in place of an attribute of a class or module.

    The attribute may be an object of another tool that looks like a function or a class method,
    such as a wrapper of wrapt. Only a call through the class tells such an object the instance.
    """
    if type(attribute) in (FunctionType, classmethod, staticmethod) or inspect.ismodule(owner):
        return _function(attribute)  # type: ignore[no-any-return]
    if isinstance(attribute, staticmethod):
        return attribute.__get__(None, owner)
    is_of_class = isinstance(attribute, classmethod)

    @functools.wraps(attribute)
    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        instance, cls = (None, first) if is_of_class else (first, type(first))
        return attribute.__get__(instance, cls)(*args, **kwargs)

    return call


def _unwrap(seam: Seam, removed: frozenset[Seam]) -> None:
    """Put the function of a seam back, with the wrappers of all seams that are not removed."""
    owner, name, attribute = _find(seam)
    wrappers = _wrappers(attribute)
    if seam not in [wrapper.seam for wrapper in wrappers]:
        return
    if wrappers[-1].function is not _function(attribute):
        raise SeamCovered(f"{seam} was wrapped by another tool after cpu-tiers: unwrap it first")
    setattr(owner, name, wrappers[0].before)
    install(wrapper.seam for wrapper in wrappers if wrapper.seam not in removed)


def _wrappers(attribute: Any) -> tuple[_Wrapper, ...]:
    """Return the wrappers of cpu-tiers around a function, the innermost first."""
    wrappers: tuple[_Wrapper, ...] = getattr(_function(attribute), _MARK, ())
    return wrappers


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
    function = _innermost(attribute)
    parameters = _parameters(function)
    if parameters not in (seam.parameters, *seam.other_parameters):
        raise SeamMismatch(_message(seam, _difference(seam, function, parameters)))
    return owner, name, attribute


def _innermost(attribute: Any) -> Any:
    """Return the function without any wrapper around it."""
    function = inspect.unwrap(_function(attribute))
    if getattr(function, "__qualname__", "").startswith("expected_exceptions."):
        # oslo.messaging's decorator does not say which function it wraps.
        return inspect.getclosurevars(function).nonlocals["func"]
    return function


def _parameters(function: Callable[..., Any]) -> str:
    """Return the parameters of a function as its ``def`` has them, without annotations.

    Kinds and defaults count: a wrapper hands on the default that it was written with, and
    passes arguments by position.
    """
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    # A default may be an object that only tells whether there is an argument.
    return re.sub(r" at 0x[0-9a-f]+>", ">", text).removeprefix("(").removesuffix(")")


def _function(attribute: Any) -> Any:
    """Return the function of a class method or static method; a plain function unchanged."""
    return attribute.__func__ if isinstance(attribute, classmethod | staticmethod) else attribute


def _difference(seam: Seam, function: Any, parameters: str) -> str:
    """Return what is different about the function in the place of Nova's function."""
    module: str = getattr(function, "__module__", "")
    if seam.module.startswith("nova.") and not module.startswith("nova."):
        name = getattr(function, "__qualname__", type(function).__name__)
        return (
            f"its parameters are {parameters}, those of {module}.{name}, which wraps the function"
            " of Nova without functools.wraps"
        )
    return f"its parameters are {parameters}"


def _message(seam: Seam, difference: str) -> str:
    expected = " or ".join((seam.parameters, *seam.other_parameters))
    return does_not_fit(f"{seam} was expected with the parameters {expected}, but {difference}")


def does_not_fit(difference: str) -> str:
    """Return the message of a :class:`SeamMismatch`."""
    return (
        f"cpu-tiers does not fit Nova {version('nova')}: {difference}. Install a release of "
        "cpu-tiers for this Nova, or take cpu-tiers out of nova.conf"
    )
