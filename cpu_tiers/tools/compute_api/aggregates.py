"""Reads the host aggregates of a cloud from Nova's API.

Source: Nova API reference, ``GET /os-aggregates``, which only administrators may ask for.
"""

from typing import NamedTuple

from cpu_tiers.tools.compute_api.answers import NOVA, Wanted, get, part
from cpu_tiers.tools.http.services import Services

MICROVERSION = "2.41"
"""The first microversion whose aggregates have the uuids that they have in Placement."""

_AGGREGATES = Wanted(NOVA, "aggregates", "a list of aggregates")


class HostAggregate(NamedTuple):
    """A host aggregate.

    :param zone: the availability zone that the aggregate makes of its hosts; ``None`` for none.
    """

    uuid: str
    name: str
    zone: str | None


def read_aggregates(services: Services) -> list[HostAggregate]:
    """Return all host aggregates, with one request.

    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    """
    path = "/os-aggregates"
    body = get(services, path, _AGGREGATES, MICROVERSION)
    aggregates = []
    for each in part(body, "aggregates", list, path, _AGGREGATES):
        uuid, name = (part(each, key, str, path, _AGGREGATES) for key in ("uuid", "name"))
        zone = each.get("availability_zone")
        aggregates.append(HostAggregate(uuid, name, zone if isinstance(zone, str) else None))
    return aggregates
