"""Reads a server, its image and its ports from the APIs of Nova, Glance and Neutron.

Source: API references of Nova (``GET /servers/{id}``, microversion 2.47: the flavor is embedded),
Glance (``GET /v2/images/{id}``) and Neutron (``GET /v2.0/ports``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from keystoneauth1.adapter import Adapter

from cpu_tiers.compute_api.answers import GLANCE, NEUTRON, NOVA, Wanted, get, part, service_adapter
from cpu_tiers.http.retries import RetryPolicy

Document = Mapping[str, Any]

MICROVERSION = "2.47"
"""The first microversion whose servers have their flavor with its extra specs."""

_SERVER = Wanted(NOVA, "a server", "a server")
_IMAGE = Wanted(GLANCE, "an image", "an image")
_PORTS = Wanted(NEUTRON, "ports", "a list of ports")
_POLICY = RetryPolicy()


class ReadServer(NamedTuple):
    """A server with what decides about its request.

    :param name: the name of the server.
    :param flavor: the flavor that is embedded in the server: ``original_name``, ``vcpus``,
        ``ram``, ``disk``, ``ephemeral``, ``swap`` and ``extra_specs``.
    :param image: the image as Glance returns it; ``None`` for a server that was created from a
        volume.
    :param ports: the ports as Neutron returns them.
    """

    name: str
    flavor: Document
    image: Document | None
    ports: tuple[Document, ...]


def read_server(
    placement: Adapter, server_id: str, retry_policy: RetryPolicy = _POLICY
) -> ReadServer:
    """Return a server. It takes two or three requests.

    :param placement: an adapter for Placement, whose credentials are used.
    :raises ComputeApiUnavailable: a service does not answer, or has no such server or image.
    """
    path = f"/servers/{quote(server_id, safe='')}"
    nova = service_adapter(placement, NOVA.service_type)
    body = get(nova, path, retry_policy, _SERVER, MICROVERSION)
    server = part(body, "server", dict, path, _SERVER)
    image = server.get("image")
    return ReadServer(
        name=part(server, "name", str, path, _SERVER),
        flavor=part(server, "flavor", dict, path, _SERVER),
        image=_read_image(placement, image, path, retry_policy) if image else None,
        ports=_read_ports(placement, server_id, retry_policy),
    )


def _read_image(
    placement: Adapter, image: object, path: str, retry_policy: RetryPolicy
) -> Document:
    image_id = part(image, "id", str, path, _SERVER)
    glance = service_adapter(placement, GLANCE.service_type)
    return get(glance, f"/v2/images/{quote(image_id, safe='')}", retry_policy, _IMAGE)


def _read_ports(
    placement: Adapter, server_id: str, retry_policy: RetryPolicy
) -> tuple[Document, ...]:
    neutron = service_adapter(placement, NEUTRON.service_type)
    path = f"/v2.0/ports?device_id={quote(server_id, safe='')}"
    ports = part(get(neutron, path, retry_policy, _PORTS), "ports", list, path, _PORTS)
    return tuple(port for port in ports if isinstance(port, Mapping))
