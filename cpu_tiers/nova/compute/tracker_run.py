"""Which run of Nova's resource tracker the driver is called in.

Nova calls ``update_provider_tree`` from one place, and does not tell the
driver whether the service is just starting: the one time when a reshape is
allowed. A seam around that place remembers it, for the time of the call.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.seams import Seam


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of the resource tracker that reports a host to Placement."""

    tracker: Any
    context: Any
    startup: bool

    def allocations(self, nodename: str) -> dict[str, dict[str, Any]]:
        """Return what every consumer of the host holds, as Nova passes it on."""
        client = self.tracker.reportclient
        found: dict[str, dict[str, Any]] = client.get_allocations_for_provider_tree(
            self.context, nodename
        )
        return found

    def file_with_shares(self, name: str, uuid: str, *, is_root: bool = True) -> str | None:
        """Return the provider.yaml that gives this provider shares, if one does."""
        configs = self.tracker.provider_configs
        return file_with_shares(configs, name, uuid, is_root=is_root)


_CURRENT: ContextVar[Run | None] = ContextVar("cpu_tiers_tracker_run", default=None)


def current() -> Run | None:
    """Return the run that we are called in."""
    return _CURRENT.get()


@contextmanager
def _entered(run: Run) -> Iterator[None]:
    token = _CURRENT.set(run)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def _wrap(update_to_placement: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(update_to_placement)
    def remembered(self: Any, context: Any, compute_node: Any, startup: bool) -> Any:
        with _entered(Run(tracker=self, context=context, startup=startup)):
            return update_to_placement(self, context, compute_node, startup)

    return remembered


SEAM = Seam(
    module="nova.compute.resource_tracker",
    path="ResourceTracker._update_to_placement",
    parameters=("self", "context", "compute_node", "startup"),
    wrap=_wrap,
)


def file_with_shares(
    configs: Mapping[str, Mapping[str, Any]], name: str, uuid: str, *, is_root: bool = True
) -> str | None:
    """Return the provider configuration file that gives a provider shares.

    Nova's rule: ``$COMPUTE_NODE`` counts for a root where neither the name nor
    the uuid of the provider is configured ("Managing Resource Providers Using Config
    Files" in Nova's administrator guide).

    :param configs: as Nova read them, by name, uuid or ``$COMPUTE_NODE``.
    """
    own = [configs[key] for key in (name, uuid) if key in configs]
    default = [configs["$COMPUTE_NODE"]] if is_root and "$COMPUTE_NODE" in configs else []
    for config in own or default:
        for inventories in config.get("inventories", {}).get("additional", ()):
            if VCPU_SHARES in inventories:
                return str(config["__source_file"])
    return None
