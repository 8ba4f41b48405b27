"""Seam that creates custom resource classes and traits in Placement before a query uses them.

Placement answers 400 to a query with an unknown name. Only the names that
translators return are created. A name in the extra specs of a flavor may be a
typing error, and stays an error.
"""

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from keystoneauth1.exceptions import ClientException

from cpu_tiers.model.names import is_custom
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

_NEEDED = "cpu_tiers_needed"
"""The attribute of Nova's ResourceRequest with the names to create, as URLs of Placement."""


def need(request: Any, groups: Iterable[RequestGroup]) -> None:
    """Have the custom names of ``groups`` created before ``request`` is sent to Placement.

    :param request: Nova's ``ResourceRequest``.
    """
    setattr(request, _NEEDED, getattr(request, _NEEDED, frozenset()) | _urls(groups))


def _urls(groups: Iterable[RequestGroup]) -> frozenset[str]:
    """Return the URL in Placement of each custom class and trait of the groups."""
    classes = {name for group in groups for name in group.resources}
    traits = {name for group in groups for name in group.required | group.forbidden}
    return frozenset(
        f"/{kind}/{name}"
        for kind, names in (("resource_classes", classes), ("traits", traits))
        for name in names
        if is_custom(name)
    )


def _ensure_names(original: Callable[..., Any]) -> Callable[..., Any]:
    """Create the names of a query before the query is sent."""
    created: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        needed: frozenset[str] = getattr(resources, _NEEDED, frozenset())
        if needed:
            known = created.setdefault(self, set())
            known |= {url for url in sorted(needed - known) if _create(self, context, url)}
        return original(self, context, resources)

    return get_allocation_candidates


def _create(client: Any, context: Any, url: str) -> bool:
    """Create a name in Placement; return whether Placement has the name.

    If Placement does not create the name, the query is sent all the same, and its
    failure is handled by Nova.
    """
    # Not Nova's _ensure_resource_classes: its safe_connect returns None both after success and
    # after a connection failure, so the name would not be tried again.
    try:
        response = client.put(url, None, version="1.7", global_request_id=context.global_id)
        outcome = "" if response else f"{response.status_code} {response.text}"
    except ClientException as error:
        outcome = str(error)
    if outcome:
        LOG.warning("Placement did not create %s: %s", url, outcome)
    return not outcome


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters=("self", "context", "resources"),
    wrap=_ensure_names,
    why=(
        "Placement answers 400 to a query with a name that it does not know; the wrapper "
        "creates custom names first."
    ),
    unseen=(
        "If another function sends the query, the first server of a new resource class gets no "
        "host."
    ),
)
"""The seam around the query for allocation candidates."""
