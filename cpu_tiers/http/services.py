"""The services of a cloud: an adapter for each service, and one session for all of them.

The session comes from nova.conf (:mod:`cpu_tiers.placement.session`) or from the openstack client
(:mod:`cpu_tiers.http.openstack_client`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from keystoneauth1.adapter import Adapter

from cpu_tiers.http.retries import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the settings of a session are, for the advice in an error.

    :param connection: the settings that decide which URL a service has.
    :param credentials: the settings of the user.
    """

    connection: str
    credentials: str


NOVA_CONF = Settings(
    connection="auth_url, valid_interfaces, region_name and cafile in [placement]",
    credentials="the credentials in [placement] of nova.conf",
)
OPENSTACK_CLIENT = Settings(
    connection="auth_url, interface, region_name and cacert in clouds.yaml or OS_*",
    credentials="the credentials in clouds.yaml or OS_*",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of a cloud with the credentials of one user.

    :param adapter: returns the adapter for a type of service, such as ``compute``.
    :param settings: where the URLs and the credentials come from.
    """

    adapter: Callable[[str], Adapter]
    settings: Settings = NOVA_CONF
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
