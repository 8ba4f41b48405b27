"""Reports of a host to Placement, made by hand: Nova's real provider tree, and no services."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception
from nova.compute.provider_tree import ProviderTree

from cpu_tiers.nova.compute.host_report import HostReport, TrackerRun

__all__ = ["NO_ALLOCATIONS", "SHARES", "host_report", "record", "shares_file"]

SHARES = "CUSTOM_VCPU_SHARES"

NO_ALLOCATIONS = [
    pytest.param(ConnectFailure("reset"), id="no connection"),
    pytest.param(
        exception.ResourceProviderAllocationRetrievalFailed(rp_uuid="one", error="503"), id="503"
    ),
    pytest.param(ValueError("half an answer"), id="half JSON"),
    pytest.param(KeyError("allocations"), id="JSON without allocations"),
]
"""The failures of a read of allocations."""

Records = Mapping[str, dict[str, float]]


def record(total: int, **others: float) -> dict[str, float]:
    """Return an inventory as Placement shows it."""
    plain = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    return {"total": total, **plain, "allocation_ratio": 1.0, **others}


def shares_file(*classes: str, path: str = "/etc/a.yaml") -> dict[str, Any]:
    """Return a provider.yaml that gives shares to a provider, as Nova has read it.

    :param classes: the classes of the file instead of shares.
    """
    additional = [{name: {"total": 1}} for name in classes or [SHARES]]
    return {"__source_file": path, "inventories": {"additional": additional}}


def host_report(
    providers: Mapping[str, Records],
    *,
    startup: bool = False,
    allocations: dict[str, Any] | None = None,
    in_placement: Mapping[str, Any] | Exception | None = None,
    files: Mapping[str, Any] | None = None,
) -> HostReport:
    """Return a report of the host ``one``.

    :param providers: inventories by name, parents first; the uuid of a provider is ``uuid of``
        and its name. ``one_NUMA0_PAGES_4`` is a child of ``one_NUMA0``.
    :param in_placement: the allocations that a read from Placement returns, or its failure.
    """
    tree = ProviderTree()
    for name, inventory in providers.items():
        node = name.partition("_PAGES_")[0]
        if name == "one":
            tree.new_root(name, f"uuid of {name}", generation=7)
        else:
            parent = "one" if node == name else node
            tree.new_child(name, parent, uuid=f"uuid of {name}", generation=7)
        tree.update_inventory(name, dict(inventory))
    failure = in_placement if isinstance(in_placement, Exception) else None
    read = mock.Mock(side_effect=failure, return_value=in_placement or {})
    client = SimpleNamespace(get_allocations_for_provider_tree=read)
    tracker = SimpleNamespace(
        host="compute-one", reportclient=client, provider_configs=files or {}
    )
    run = TrackerRun(tracker=tracker, context=None, startup=startup)
    return HostReport(run=run, name="one", tree=tree, allocations=allocations)
