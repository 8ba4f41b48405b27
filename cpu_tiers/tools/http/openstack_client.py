"""The services of the cloud that a user of the openstack client has chosen.

The client authenticates, by clouds.yaml, ``OS_*`` and its own options, and the session of the
client is used as it is: with its token, its certificates and its user agent. This module imports
nothing of the client.
"""

from functools import partial
from typing import Any, Protocol

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from cpu_tiers.tools.http.redirects import refuse_other_hosts
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.http.settings import OPENSTACK_CLIENT


class Region(Protocol):
    """What is used of ``openstack.config.cloud_region.CloudRegion``.

    Each method takes the type of a service, because clouds.yaml can have settings for each
    service, such as ``placement_endpoint_override``.
    """

    def get_service_type(self, service_type: str) -> str:
        """Return the type of the service in the catalog of Keystone."""

    def get_service_name(self, service_type: str) -> str | None:
        """Return the name of the service in the catalog of Keystone."""

    def get_interface(self, service_type: str) -> Any:
        """Return the interface of the endpoint, such as ``public``."""

    def get_region_name(self, service_type: str) -> str | None:
        """Return the region of the endpoint."""

    def get_endpoint(self, service_type: str) -> str | None:
        """Return the URL that replaces the URL in the catalog."""


def services_of_client(session: Session, region: Region) -> Services:
    """Return the services that the openstack client finds.

    A redirect to another host is not followed, see :mod:`~cpu_tiers.tools.http.redirects`.

    :param session: the authenticated session of the client.
    """
    refuse_other_hosts(session.session)
    return Services(adapter=partial(_adapter, session, region), settings=OPENSTACK_CLIENT)


def _adapter(session: Session, region: Region, service_type: str) -> Adapter:
    return Adapter(
        session=session,
        service_type=region.get_service_type(service_type),
        service_name=region.get_service_name(service_type),
        interface=region.get_interface(service_type),
        region_name=region.get_region_name(service_type),
        endpoint_override=region.get_endpoint(service_type),
    )
