"""Seam that creates custom resource classes and traits in Placement before a query uses them.

Placement answers 400 to a query with an unknown name. Only names of cpu-tiers, and names that
installed translators return, are created. A trait in the extra specs of a flavor may be a typing
error, and a trait of an image is chosen by a project: both stay an error.
"""

import re
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from keystoneauth1.exceptions import ClientException
from oslo_log import log as logging

from cpu_tiers.in_time import TimeBudget
from cpu_tiers.model import numa
from cpu_tiers.model.names import MULTIPLIER_TRAIT, POLICY_TRAITS, is_custom
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import steps
from cpu_tiers.nova.notes import note, query_of
from cpu_tiers.nova.seams import Function

LOG = logging.getLogger(__name__)

_OF_PORTS = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")
"""The beginnings of the traits that Neutron gives to devices and requests for ports."""

_OURS = {
    *(MULTIPLIER_TRAIT, *POLICY_TRAITS, numa.NODE_TRAIT, numa.NO_NUMA_TRAIT),
    *(numa.SMALL_PAGES_TRAIT, numa.LARGE_PAGES_TRAIT),
}

_CREATION = TimeBudget("new names in Placement", seconds=5.0, pause=5.0)
"""Placement may have the names already, so a query is sent without the work in a pause."""

_CREATED: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The URLs that Placement has, by Nova's ``SchedulerReportClient``."""


def need(request: Any, groups: Iterable[RequestGroup], *, translated: bool = False) -> None:
    """Have the custom names of ``groups`` created before ``request`` is sent to Placement.

    :param request: Nova's ``ResourceRequest``.
    :param translated: the groups are those of installed translators, whose traits are created,
        too. Otherwise a trait of another name comes from the flavor or the image.
    """
    groups = tuple(groups)
    traits = {name for group in groups for name in group.required | group.forbidden}
    urls = {f"/traits/{name}" for name in traits if translated or _is_ours(name)}
    urls |= {f"/resource_classes/{name}" for group in groups for name in group.resources}
    custom = {url for url in urls if is_custom(url.rpartition("/")[2])}
    note(request, names=query_of(request).names | custom)


def _is_ours(trait: str) -> bool:
    """Tell whether cpu-tiers or Neutron has made the name of a trait."""
    size = re.fullmatch(rf"{numa.SIZE_TRAIT}([1-9][0-9]{{0,7}})", trait)
    if size:  # an image may name any number: pages have a power of two kB, 4 kB to 16 GB
        size_kb = int(size[1])
        return size_kb.bit_count() == 1 and 2**2 <= size_kb <= 2**24
    return trait in _OURS or trait.startswith((*_OF_PORTS, numa.COUNT_TRAIT))


def _ensure_names(original: Function, self: Any, context: Any, resources: Any) -> Any:
    if names := query_of(resources).names:
        known = _CREATED.setdefault(self, set())
        if unknown := sorted(names - known):
            _CREATION.do(lambda: known.update(u for u in unknown if _create(self, context, u)))
    return original(self, context, resources)


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


SEAM = steps.candidates(_ensure_names)
