"""Seam: custom classes and traits exist before Placement is asked for them.

Placement refuses a query with an unknown name. Only names of translators are
created: one that a flavor states itself may be a slip of the pen.
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
"""The attribute of Nova's ResourceRequest that has the names to create, as URLs."""


def need(request: Any, groups: Iterable[RequestGroup]) -> None:
    """Have the custom names of ``groups``, too, created before ``request`` is sent.

    :param request: Nova's ``ResourceRequest``.
    """
    setattr(request, _NEEDED, getattr(request, _NEEDED, frozenset()) | _urls(groups))


def _urls(groups: Iterable[RequestGroup]) -> frozenset[str]:
    """Return where Placement keeps each custom class and trait of the groups."""
    classes = {name for group in groups for name in group.resources}
    traits = {name for group in groups for name in group.required | group.forbidden}
    return frozenset(
        f"/{kind}/{name}"
        for kind, names in (("resource_classes", classes), ("traits", traits))
        for name in names
        if is_custom(name)
    )


def _ensure_names(original: Callable[..., Any]) -> Callable[..., Any]:
    """Create names before the first query that has them."""
    ensured: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        needed: frozenset[str] = getattr(resources, _NEEDED, frozenset())
        if needed:
            known = ensured.setdefault(self, set())
            known |= {url for url in sorted(needed - known) if _create(self, context, url)}
        return original(self, context, resources)

    return get_allocation_candidates


def _create(client: Any, context: Any, url: str) -> bool:
    """Create a name, or tell that it could not be: the query goes on and fails by itself.

    Nova's own ``_ensure_resource_classes`` does not tell when nobody answers.
    """
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
)
"""Nothing is asked for that Placement does not know."""
