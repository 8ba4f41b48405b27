"""Seams: functions of Nova that we wrap, each verified before it is touched.

A seam is installed once, whichever of our classes Nova loads first, and
however often. A release of Nova whose function has other parameters than the
wrapper was written for is an error at start-up that names it, never a silent
no-op. Nothing is wrapped unless everything fits.
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


class SeamMismatch(CpuTiersError):
    """A function of the installed Nova is not the one that a seam was written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """A function of Nova and what stands around it from now on.

    :param module: where it is defined, such as ``nova.scheduler.utils``.
    :param path: its qualified name there, such as ``ResourceRequest.from_request_spec``.
    :param parameters: the names of its parameters, with ``self`` or ``cls``.
    :param wrap: called with the original function, and returns the wrapper.
        Not given for a function that is only verified.
    """

    module: str
    path: str
    parameters: tuple[str, ...]
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None

    def __str__(self) -> str:
        """Return the full name of the function."""
        return f"{self.module}.{self.path}"


def install(seams: Sequence[Seam], *, level: int = logging.INFO) -> None:
    """Wrap the functions of ``seams`` that are not wrapped yet.

    Safe to call from several threads, native or green, and again.

    :param level: of the log's line for each.
    :raises SeamMismatch: one does not fit this Nova; none is wrapped then.
    """
    with _INSTALLING:
        verify(seams)
        for seam in seams:
            _wrap(seam, level)


def verify(seams: Sequence[Seam]) -> None:
    """Check functions of Nova that we override, call or wrap, and wrap none of them.

    :raises SeamMismatch: one does not fit this Nova.
    """
    for seam in seams:
        _find(seam)


def _wrap(seam: Seam, level: int) -> None:
    """Wrap the function of one seam; several seams may stand around one function."""
    if seam.wrap is None:
        return
    owner, name, found = _find(seam)
    function = _function(found)
    installed: tuple[Seam, ...] = getattr(function, _MARK, ())
    if seam in installed:
        return
    wrapper = seam.wrap(function)
    setattr(wrapper, _MARK, (*installed, seam))
    setattr(owner, name, wrapper if function is found else type(found)(wrapper))
    LOG.log(level, "cpu-tiers wraps %s of Nova %s", seam, version("nova"))


def _find(seam: Seam) -> tuple[Any, str, Any]:
    """Return what holds the function, its name there, and the function as stored."""
    *holders, name = seam.path.split(".")
    try:
        owner: Any = importlib.import_module(seam.module)
        for holder in holders:
            owner = getattr(owner, holder)
        found = inspect.getattr_static(owner, name)
    except (AttributeError, ModuleNotFoundError) as error:
        raise SeamMismatch(_message(seam, "it does not exist")) from error
    parameters = tuple(inspect.signature(inspect.unwrap(_function(found))).parameters)
    if parameters != seam.parameters:
        raise SeamMismatch(_message(seam, f"its parameters are {', '.join(parameters)}"))
    return owner, name, found


def _function(found: Any) -> Any:
    """Return what a class or static method is made of, and anything else as it is."""
    return found.__func__ if isinstance(found, classmethod | staticmethod) else found


def _message(seam: Seam, found: str) -> str:
    return (
        f"cpu-tiers does not fit Nova {version('nova')}: {seam} was expected with the "
        f"parameters {', '.join(seam.parameters)}, but {found}. Install a release of cpu-tiers "
        "for this Nova, or take cpu-tiers out of nova.conf"
    )
