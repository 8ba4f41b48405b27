"""Requests to the APIs of other services than Placement, and checks of their answers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ClientException
from requests import JSONDecodeError, RequestException

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.http.retries import RetryPolicy, may_pass, retry_after_of, retrying


class ComputeApiUnavailable(CpuTiersError):
    """An API does not answer, refuses, or its answer has another form."""


class Api(NamedTuple):
    """The API of a service, for messages.

    :param name: the name of the API.
    :param service_type: the type of the service in the catalog of Keystone.
    """

    name: str
    service_type: str


NOVA = Api("Nova's API", "compute")
NEUTRON = Api("Neutron", "network")
GLANCE = Api("Glance", "image")


class Wanted(NamedTuple):
    """What a request is for, for messages.

    :param things: for example ``flavors``.
    :param form: the form of a right answer, for example ``a list of flavors``.
    """

    service: Api
    things: str
    form: str


def service_adapter(placement: Adapter, service_type: str) -> Adapter:
    """Return an adapter for a service with the credentials of an adapter for Placement."""
    return Adapter(
        session=placement.session,
        auth=placement.auth,
        service_type=service_type,
        interface=placement.interface,
        region_name=placement.region_name,
    )


def get(
    adapter: Adapter,
    path: str,
    retry_policy: RetryPolicy,
    wanted: Wanted,
    microversion: str | None = None,
) -> Mapping[str, Any]:
    """Return the JSON object with which a service answers a GET.

    :raises ComputeApiUnavailable: the service does not answer, or the answer is no JSON object.
    """
    repeat = retrying(retry_policy, may_pass, retry_after_of)
    try:
        body = repeat(adapter.get, path, microversion=microversion).json()
    except (ClientException, RequestException, JSONDecodeError, RecursionError) as error:
        reason = printable(str(error)[:300]) or type(error).__name__
        raise ComputeApiUnavailable(
            f"GET {path}: {wanted.service.name} cannot be asked for {wanted.things}: {reason};"
            " check the credentials in [placement] of nova.conf, and the endpoint of the service"
            f" {wanted.service.service_type}"
        ) from error
    if not isinstance(body, dict):
        raise _other_form(path, wanted)
    return body


def part(body: object, key: str, kind: type[Any], path: str, wanted: Wanted) -> Any:
    """Return ``body[key]``, checked to be of a type.

    :raises ComputeApiUnavailable: the key is missing, or its value has another type.
    """
    if isinstance(body, Mapping) and isinstance(body.get(key), kind):
        return body[key]
    raise _other_form(path, wanted)


def _other_form(path: str, wanted: Wanted) -> ComputeApiUnavailable:
    return ComputeApiUnavailable(
        f"GET {path}: the answer is not {wanted.form}; check the endpoint of the service"
        f" {wanted.service.service_type} in the catalog of Keystone"
    )
