"""Reads all flavors of a cloud from Nova's API.

Source: Nova API reference, ``GET /flavors/detail`` and ``GET /flavors/{id}/os-extra_specs``.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from requests import JSONDecodeError, RequestException

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.http.retries import RetryPolicy, may_pass, retry_after_of, retrying

Flavor = Mapping[str, Any]

MICROVERSION = "2.61"
"""The first microversion whose flavors have ``extra_specs``, and the microversion in use."""

_POLICY = RetryPolicy()
_PAGE = 1000  # the default of [api] max_limit, so that Nova does not shorten the pages


class ComputeApiUnavailable(CpuTiersError):
    """Nova's API does not answer, refuses, or its answer is not a list of flavors."""


def nova_adapter(placement: Adapter) -> Adapter:
    """Return an adapter for Nova's API with the credentials of an adapter for Placement."""
    return Adapter(
        session=placement.session,
        auth=placement.auth,
        service_type="compute",
        interface=placement.interface,
        region_name=placement.region_name,
    )


def read_flavors(nova: Adapter, retry_policy: RetryPolicy = _POLICY) -> Iterator[Flavor]:
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
        body = _get(nova, path, retry_policy)
        page = _part(body, "flavors", list, path)
        for flavor in page:
            identifier = quote(_part(flavor, "id", str, path), safe="", errors="replace")
            specs_of = flavor
            if "extra_specs" not in flavor:
                specs_of = _get(nova, f"/flavors/{identifier}/os-extra_specs", retry_policy)
            yield {**flavor, "extra_specs": _part(specs_of, "extra_specs", dict, path)}
        following = _part(page[-1], "id", str, path) if page else None
        if "flavors_links" not in body or following in (None, marker):
            return
        marker = following


def _get(nova: Adapter, path: str, retry_policy: RetryPolicy) -> Mapping[str, Any]:
    repeat = retrying(retry_policy, may_pass, retry_after_of)
    try:
        body = repeat(nova.get, path, microversion=MICROVERSION).json()
    except (ClientException, RequestException, JSONDecodeError, RecursionError) as error:
        reason = printable(str(error)[:300]) or type(error).__name__
        raise ComputeApiUnavailable(
            f"GET {path}: Nova's API cannot be asked for flavors: {reason}; check the"
            " credentials in [placement] of nova.conf, and the endpoint of the service compute"
        ) from error
    if not isinstance(body, dict):
        raise _other_shape(path)
    return body


def _part(body: object, key: str, kind: type[Any], path: str) -> Any:
    if isinstance(body, Mapping) and isinstance(body.get(key), kind):
        return body[key]
    raise _other_shape(path)


def _other_shape(path: str) -> ComputeApiUnavailable:
    return ComputeApiUnavailable(
        f"GET {path}: the answer is not a list of flavors; check the endpoint of the service"
        " compute in the catalog of Keystone"
    )
