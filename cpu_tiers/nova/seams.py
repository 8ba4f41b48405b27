"""Seams: functions of Nova that cpu-tiers wraps or relies on, each verified before use.

A service installs the seams of its features (:mod:`cpu_tiers.nova.features`). A function has a
single wrapper, which takes the steps of all installed seams of the function. If the parameters of
a function in the installed Nova differ from the parameters of its seam, the service stops at its
start with an error that names the function. Without the check, a wrapper could silently have no
effect.
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

_MARK = "__cpu_tiers_wrapper__"
"""The attribute of a wrapped function with its :class:`_Wrapper`. ``functools.wraps`` of a wrapper
from another tool, such as a profiler, copies the attribute to the tool's own wrapper."""

Function = Callable[..., Any]
"""A function of Nova, or what is left of the wrapper around the function."""


class SeamMismatch(CpuTiersError):
    """The installed Nova lacks a function or an attribute, or has it in another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A function of Nova, and what cpu-tiers does in its wrapper around the function.

    ``docs/reference/seams.toml`` has the reason, and the change of Nova that would end the
    wrapper.

    :param module: the module with the function, such as ``nova.scheduler.utils``.
    :param path: the qualified name of the function in the module, such as
        ``ResourceRequest.from_request_spec``.
    :param parameters: the function's parameters as its ``def`` has them, without annotations:
        ``self, spec_obj, limits=None``, also with ``*`` and ``/``.
    :param wrap: takes the function, or what is left of its wrapper, and returns a function with
        the same parameters. ``None`` for a function that cpu-tiers calls or overrides, and
        therefore only verifies.
    :param other_parameters: the parameters that the function has in other releases of Nova.
        The wrapper works with all of them.
    :param place: the place among several seams of the same function (:mod:`cpu_tiers.nova.steps`).
        The lowest is called first.
    """

    module: str
    path: str
    parameters: str
    wrap: Callable[[Function], Function] | None = None
    other_parameters: tuple[str, ...] = ()
    place: int = 0

    def __str__(self) -> str:
        """Return the full name of Nova's function."""
        return f"{self.module}.{self.path}"


def seam(
    function: str,
    parameters: str,
    step: Function | None = None,
    *,
    other_parameters: tuple[str, ...] = (),
    place: int = 0,
) -> Seam:
    """Return a :class:`Seam` whose wrapper takes a step.

    :param function: such as ``nova.scheduler.utils:ResourceRequest.from_request_spec``.
    :param step: is called with what is left of the wrapper, and then the arguments of Nova's
        function. It calls what is left, or not. ``None`` for a function that is only verified.
    """
    module, path = function.split(":")
    return Seam(
        module=module,
        path=path,
        parameters=parameters,
        wrap=functools.partial(functools.partial, step) if step else None,
        other_parameters=other_parameters,
        place=place,
    )


class _Wrapper:
    """The only wrapper of cpu-tiers around a function, which takes the steps of all its seams.

    :param before: the attribute of Nova's class or module that the wrapper replaced.
    """

    def __init__(self, owner: Any, name: str, before: Any) -> None:
        self._owner, self._name, self._before = owner, name, before
        self._original = call = _original(owner, before)
        self.take(())

        @functools.wraps(call)
        def take_steps(*args: Any, **kwargs: Any) -> Any:
            return self._call(*args, **kwargs)

        setattr(take_steps, _MARK, self)
        self._function = take_steps
        # A wrapper in place of a class method or a static method has to be of that kind, too, or
        # Nova would call the wrapper without the class, or with an instance too many.
        kinds = [kind for kind in (classmethod, staticmethod) if isinstance(before, kind)]
        setattr(owner, name, kinds[0](take_steps) if kinds else take_steps)

    def take(self, seams: Iterable[Seam]) -> None:
        """Take only the steps of the given seams from now on."""
        self.seams = tuple(sorted(seams, key=lambda seam: seam.place))
        call = self._original
        for seam in reversed(self.seams):
            if seam.wrap:
                call = seam.wrap(call)
        self._call = call

    def end(self) -> None:
        """Put the function of Nova back, unless another tool has wrapped this wrapper."""
        if _function(inspect.getattr_static(self._owner, self._name)) is self._function:
            setattr(self._owner, self._name, self._before)


def install(seams: Iterable[Seam]) -> tuple[Seam, ...]:
    """Have the wrapper of each function take the steps of ``seams``, too.

    Several threads, native or green, may call this function at the same time.

    :returns: the seams whose steps were not taken before.
    :raises SeamMismatch: a seam does not fit the installed Nova. No function is wrapped.
    """
    seams = tuple(dict.fromkeys(seams))
    with _CHANGING:
        # All seams first, so that a mismatch leaves every function of Nova as it was.
        verify(seams)
        new = tuple(seam for seam in seams if seam.wrap and not is_installed(seam))
        for seam in new:
            owner, name, attribute = _find(seam)
            wrapper = _wrapper(attribute) or _Wrapper(owner, name, attribute)
            wrapper.take((*wrapper.seams, seam))
        return new


def remove(seams: Iterable[Seam]) -> None:
    """Take the steps of ``seams`` no more; a function of which no step is left is put back."""
    with _CHANGING:
        for seam in seams:
            wrapper = _wrapper(_find(seam)[2])
            if wrapper and seam in wrapper.seams:
                wrapper.take(each for each in wrapper.seams if each != seam)
                if not wrapper.seams:
                    wrapper.end()


def is_installed(seam: Seam) -> bool:
    """Tell whether the wrapper of a seam's function takes the step of the seam."""
    return seam in steps_of(_find(seam)[2])


def steps_of(attribute: Any) -> tuple[Seam, ...]:
    """Return the seams whose steps the wrapper around a function takes, the first called first."""
    wrapper = _wrapper(attribute)
    return wrapper.seams if wrapper else ()


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


def _wrapper(attribute: Any) -> _Wrapper | None:
    """Return the wrapper of cpu-tiers around a function, which other tools may have wrapped."""
    wrapper: _Wrapper | None = getattr(_function(attribute), _MARK, None)
    return wrapper


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
    function = inspect.unwrap(_function(attribute))
    if getattr(function, "__qualname__", "").startswith("expected_exceptions."):
        # oslo.messaging's decorator does not say which function it wraps.
        return inspect.getclosurevars(function).nonlocals["func"]
    return function


def _parameters(function: Callable[..., Any]) -> str:
    """Return the parameters of a function as its ``def`` has them, without annotations.

    Kinds and defaults count (decision D58).
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
