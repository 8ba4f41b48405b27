"""A program of Nova beside a vendor's product: ``python -m tests.processes.vendor PROGRAM …``.

The product wraps one function of each service before cpu-tiers does, and logs the calls, as
tracers do. The environment variable ``VENDOR`` tells how: with ``functools.wraps`` (``wraps``),
with ``wrapt``, or ``plain``, which hides the parameters of Nova's function from cpu-tiers.
"""

import functools
import inspect
import logging
import os
import runpy
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

FUNCTIONS = {
    "nova-scheduler": (
        "nova.scheduler.client.report",
        "SchedulerReportClient",
        "get_allocation_candidates",
    ),
    "nova-compute": ("nova.compute.resource_tracker", "ResourceTracker", "_update_to_placement"),
    "nova-api": ("nova.compute.api", "API", "_validate_flavor_image_numa_pci"),
}
"""The module, the class and the name of a function that both wrap, by service."""


def saw(name: str) -> str:
    """Return the line in the log for a call of a function."""
    return f"The vendor has seen {name}"


def wrap(owner: str, name: str, module: ModuleType) -> None:
    """Wrap a function of a class in the way that ``VENDOR`` names."""
    way, holder = os.environ["VENDOR"], getattr(module, owner)
    if way == "wrapt":
        wrapt.wrap_function_wrapper(module, f"{owner}.{name}", _call)
        return
    attribute = inspect.getattr_static(holder, name)
    is_plain = inspect.isfunction(attribute)
    function = attribute if is_plain else attribute.__func__

    def seen(*args: Any, **kwargs: Any) -> Any:
        return _call(function, None, args, kwargs)

    if way == "wraps":
        seen = functools.wraps(function)(seen)
    setattr(holder, name, seen if is_plain else type(attribute)(seen))


def _call(function: Callable[..., Any], _: object, args: Any, kwargs: Any) -> Any:
    logging.getLogger("nova.vendor").info(saw(function.__name__))
    return function(*args, **kwargs)


def install() -> None:
    """Wrap each of the functions as soon as its module is imported."""
    for module, owner, name in FUNCTIONS.values():
        wrapt.register_post_import_hook(functools.partial(wrap, owner, name), module)


if "VENDOR" in os.environ:  # in a service, not in a test
    install()
if __name__ == "__main__":
    sys.argv[:] = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
