"""Reads all flavors of a cloud from Nova's API.

Source: Nova API reference, ``GET /flavors/detail`` and ``GET /flavors/{id}/os-extra_specs``.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from cpu_tiers.compute_api.answers import (
    NOVA,
    ComputeApiUnavailable,
    Wanted,
    get,
    part,
)
from cpu_tiers.http.services import Services

__all__ = ["ComputeApiUnavailable", "read_flavors"]

Flavor = Mapping[str, Any]

MICROVERSION = "2.61"
"""The first microversion whose flavors have ``extra_specs``, and the microversion in use."""

_FLAVORS = Wanted(NOVA, "flavors", "a list of flavors")
_PAGE = 1000  # the default of [api] max_limit, so that Nova does not shorten the pages


def read_flavors(services: Services) -> Iterator[Flavor]:
    """Yield every flavor with its ``extra_specs``, public or not, page by page.

    Nova lists flavors that are not public only for an administrator. Where a policy keeps
    ``extra_specs`` out of the list, each flavor costs a request.

    :raises ComputeApiUnavailable: Nova does not answer with a list of flavors.
    """
    marker = None
    while True:
        parameters = {"is_public": "None", "limit": _PAGE, "sort_key": "flavorid"}
        parameters |= {"marker": marker} if marker else {}
        # JSON can have half of a surrogate pair, which no request can.
        path = "/flavors/detail?" + urlencode(parameters, errors="replace")
        body = get(services, path, _FLAVORS, MICROVERSION)
        page = part(body, "flavors", list, path, _FLAVORS)
        for flavor in page:
            identifier = quote(part(flavor, "id", str, path, _FLAVORS), safe="", errors="replace")
            specs_of = flavor
            if "extra_specs" not in flavor:
                of_flavor = f"/flavors/{identifier}/os-extra_specs"
                specs_of = get(services, of_flavor, _FLAVORS, MICROVERSION)
            yield {**flavor, "extra_specs": part(specs_of, "extra_specs", dict, path, _FLAVORS)}
        following = part(page[-1], "id", str, path, _FLAVORS) if page else None
        if "flavors_links" not in body or following in (None, marker):
            return
        marker = following
