"""Reads a list of Nova's API page by page.

Source: Compute API guide, "Pagination": the key ``<objects>_links`` says that there is another
page, which begins after the object of the parameter ``marker``.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from cpu_tiers.tools.compute_api.answers import Wanted, get, part
from cpu_tiers.tools.http.services import Services

PAGE = 1000  # the default of [api] max_limit, so that Nova does not shorten the pages


def read_pages(
    services: Services,
    path: str,
    parameters: Mapping[str, str | int],
    wanted: Wanted,
    microversion: str | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, each with an ``id``.

    :param path: the path of the list.
    :param parameters: of the list, among them ``limit``.
    :param wanted: the things are the key of the objects, such as ``flavors``.
    :raises ComputeApiUnavailable: Nova does not answer with a list of objects.
    """
    key, marker = wanted.things, None
    while True:
        query = {**parameters, **({"marker": marker} if marker else {})}
        # JSON can have half of a surrogate pair, which no request can.
        of_page = f"{path}?{urlencode(query, errors='replace')}"
        body = get(services, of_page, wanted, microversion)
        last = None
        for each in part(body, key, list, of_page, wanted):
            last = part(each, "id", str, of_page, wanted)
            yield each
        if f"{key}_links" not in body or last in (None, marker):
            return
        marker = last
