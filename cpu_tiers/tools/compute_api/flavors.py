"""Reads all flavors of a cloud from Nova's API.

Source: Nova API reference, ``GET /flavors/detail`` and ``GET /flavors/{id}/os-extra_specs``.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from cpu_tiers.tools.compute_api.answers import (
    NOVA,
    ComputeApiUnavailable,
    Wanted,
    get,
    part,
)
from cpu_tiers.tools.compute_api.pages import PAGE, read_pages
from cpu_tiers.tools.http.services import Services

__all__ = ["ComputeApiUnavailable", "read_flavors"]

Flavor = Mapping[str, Any]

MICROVERSION = "2.61"
"""The first microversion whose flavors have ``extra_specs``, and the microversion in use."""

_FLAVORS = Wanted(NOVA, "flavors", "a list of flavors")


def read_flavors(services: Services) -> Iterator[Flavor]:
    """Yield every flavor with its ``extra_specs``, public or not, page by page.

    Nova lists flavors that are not public only for an administrator. Where a policy keeps
    ``extra_specs`` out of the list, each flavor costs a request.

    :raises ComputeApiUnavailable: Nova does not answer with a list of flavors.
    """
    parameters: dict[str, str | int] = {
        "is_public": "None",
        "limit": PAGE,
        "sort_key": "flavorid",
    }
    for flavor in read_pages(services, "/flavors/detail", parameters, _FLAVORS, MICROVERSION):
        path, specs_of = "/flavors/detail", flavor
        if "extra_specs" not in flavor:
            path = f"/flavors/{quote(flavor['id'], safe='', errors='replace')}/os-extra_specs"
            specs_of = get(services, path, _FLAVORS, MICROVERSION)
        yield {**flavor, "extra_specs": part(specs_of, "extra_specs", dict, path, _FLAVORS)}
