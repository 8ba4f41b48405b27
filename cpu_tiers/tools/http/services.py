"""The services of a cloud: an adapter for each service, and one session for all of them.

The session comes from nova.conf (:mod:`cpu_tiers.tools.placement.session`) or from the
openstack client (:mod:`cpu_tiers.tools.http.openstack_client`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from keystoneauth1.adapter import Adapter

from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.settings import NOVA_CONF, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of a cloud with the credentials of one user.

    :param adapter: returns the adapter for a type of service, such as ``compute``.
    :param settings: where the URLs and the credentials come from.
    """

    adapter: Callable[[str], Adapter]
    settings: Settings = NOVA_CONF
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
