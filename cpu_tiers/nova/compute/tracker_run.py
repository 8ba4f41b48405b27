"""The run of Nova's resource tracker in which the compute driver is called.

``ResourceTracker._update_to_placement`` is the only caller of ``update_provider_tree``, and does
not tell the driver whether nova-compute is starting: the only time when Nova reshapes. A seam
around that function keeps its arguments for the time of the call.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from nova import exception

from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES, with_shares_named
from cpu_tiers.nova.compute.start_refusal import MoveRefused, refusals_end_process
from cpu_tiers.nova.seams import Seam


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerRun:
    """One run of the resource tracker, in which a host reports itself to Placement.

    :param tracker: Nova's ``ResourceTracker``.
    :param context: Nova's request context, which reaches the database of the host's cell v2.
    :param startup: nova-compute is starting.
    :param edited: the names of the compute nodes whose allocations cpu-tiers has changed in a
        reshape. A failure of the reshape is then a failure of cpu-tiers.
    """

    tracker: Any
    context: Any
    startup: bool
    edited: set[str] = field(default_factory=set)

    def allocations(self, nodename: str) -> dict[str, dict[str, Any]]:
        """Return the allocations of all consumers of a compute node, in Nova's shape."""
        client = self.tracker.reportclient
        allocations: dict[str, dict[str, Any]] = client.get_allocations_for_provider_tree(
            self.context, nodename
        )
        return with_shares_named(allocations)  # type: ignore[no-any-return]  # as it was


# A context variable, because nova-compute handles several requests at the same time.
_CURRENT: ContextVar[TrackerRun | None] = ContextVar("cpu_tiers_tracker_run", default=None)


def current() -> TrackerRun | None:
    """Return the run of the calling resource tracker, or ``None`` outside of a run."""
    return _CURRENT.get()


@contextmanager
def _entered(run: TrackerRun) -> Iterator[None]:
    token = _CURRENT.set(run)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def _refused_by_placement(run: TrackerRun) -> Iterator[None]:
    """Turn the failure of a reshape into a refusal, if cpu-tiers moves allocations in it.

    :raises MoveRefused: Placement has not carried the reshape out.
    """
    try:
        yield
    except exception.ReshapeFailed as failure:
        if not run.edited or isinstance(failure, MoveRefused):
            raise
        raise MoveRefused(str(failure)) from failure


def _wrap(update_to_placement: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update_to_placement)
    def remembered(self: Any, context: Any, compute_node: Any, startup: bool) -> Any:
        run = TrackerRun(tracker=self, context=context, startup=startup)
        with _entered(run):
            if not startup:
                return update_to_placement(self, context, compute_node, startup)
            with refusals_end_process(), _refused_by_placement(run):
                return update_to_placement(self, context, compute_node, startup)

    return remembered


SEAM = Seam(
    module="nova.compute.resource_tracker",
    path="ResourceTracker._update_to_placement",
    parameters="self, context, compute_node, startup",
    wrap=_wrap,
)
"""Keeps the arguments of Nova's resource tracker while it calls the driver."""


def file_with_shares(
    configs: Mapping[str, Mapping[str, Any]], name: str, uuid: str, *, is_root: bool = True
) -> str | None:
    """Return the path of a provider configuration file with shares of a provider.

    Nova's rule: ``$COMPUTE_NODE`` counts for a root provider whose name and uuid are both not
    configured ("Managing Resource Providers Using Config Files" in Nova's administrator guide).

    :param configs: the files as Nova read them, by name, uuid or ``$COMPUTE_NODE``.
    """
    own = [configs[key] for key in (name, uuid) if key in configs]
    default = [configs["$COMPUTE_NODE"]] if is_root and "$COMPUTE_NODE" in configs else []
    for config in own or default:
        for inventories in config.get("inventories", {}).get("additional", ()):
            if not {VCPU_SHARES, OTHER_SHARES}.isdisjoint(inventories):
                return str(config["__source_file"])
    return None
