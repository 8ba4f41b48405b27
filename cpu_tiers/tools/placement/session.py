"""Connecting to Placement with the options of the section ``[placement]`` of nova.conf.

The options and their defaults are Nova's, with two differences. The default of ``timeout`` is 20
seconds, so that a command does not hang if Placement does not answer. ``connect_retries`` and
``status_code_retries`` have no effect (:class:`~cpu_tiers.tools.http.retries.RetryPolicy`). A
redirect to another host is not followed (:mod:`~cpu_tiers.tools.http.services`).
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import TCPKeepAliveAdapter
from oslo_config import cfg
from urllib3.exceptions import InsecureRequestWarning

from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.tools.http.bounds import bound
from cpu_tiers.tools.http.redirects import refuse_other_hosts
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement

LOG = logging.getLogger(__name__)

GROUP = "placement"
SERVICE_TYPE = "placement"
TIMEOUT_SECONDS = 20.0

_EXAMPLE = """; nova.conf needs, for example:
[placement]
auth_type = password
auth_url = https://keystone.example.org/v3
username = placement
password = …
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = RegionOne"""


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of ``[placement]``, except the options of the auth plugin."""
    # The same defaults as nova.conf.utils.get_ksa_adapter_opts gives these two options.
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.set_default("service_type", "placement", GROUP)
    conf.set_default("valid_interfaces", ["internal", "public"], GROUP)


@contextmanager
def connect(conf: cfg.ConfigOpts, *, embedded: bool = False) -> Iterator[PlacementClient]:
    """Yield a client of the Placement service in ``[placement]``.

    The client sends nothing until a method is called.

    :param conf: the configuration, with its files already read.
    :param embedded: run a Placement inside the process instead, and ignore ``conf``.
    :raises PlacementMisconfigured: the section is missing or incomplete.
    """
    if embedded:
        with embedded_placement() as client:
            yield client
        return
    with opened_services(conf) as services:
        yield placement_client(services)


def placement_client(
    services: Services,
    *,
    retry_policy: RetryPolicy | None = None,
    connections: int | None = None,
    gives_back_oversold: bool = False,
) -> PlacementClient:
    """Return a client of the Placement of a cloud.

    :param retry_policy, gives_back_oversold: as for ``PlacementClient``.
    :param connections: so many threads use the client at the same time, each with its connection.
    """
    adapter = services.adapter(SERVICE_TYPE)
    if connections:
        for scheme in ("http://", "https://"):
            adapter.session.session.mount(scheme, TCPKeepAliveAdapter(pool_maxsize=connections))
        bound(adapter.session.session)
    return PlacementClient(
        adapter,
        retry_policy=retry_policy,
        gives_back_oversold=gives_back_oversold,
        settings=services.settings,
    )


@contextmanager
def opened_services(conf: cfg.ConfigOpts) -> Iterator[Services]:
    """Yield the services in the catalog of Keystone, with the credentials in ``[placement]``.

    :raises PlacementMisconfigured: the section is missing or incomplete.
    """
    placement = load_adapter(conf)

    def adapter(service_type: str) -> Adapter:
        if service_type == SERVICE_TYPE:
            return placement
        return Adapter(
            session=placement.session,
            auth=placement.auth,
            service_type=service_type,
            interface=placement.interface,
            region_name=placement.region_name,
        )

    try:
        yield Services(adapter=adapter)
    finally:
        placement.session.session.close()


def load_adapter(conf: cfg.ConfigOpts) -> Adapter:
    """Return a keystoneauth1 adapter for the Placement service in ``[placement]``.

    :raises PlacementMisconfigured: the section is missing or incomplete.
    """
    try:
        register_opts(conf)
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        timeout = conf[GROUP].timeout or TIMEOUT_SECONDS
        session = loading.load_session_from_conf_options(conf, GROUP, auth=auth, timeout=timeout)
        refuse_other_hosts(session.session)
        bound(session.session)
        # Nova, too, does not follow min_version and max_version.
        versions = {"min_version": None, "max_version": None}
        adapter = loading.load_adapter_from_conf_options(conf, GROUP, session=session, **versions)
    except (cfg.NoSuchOptError, cfg.TemplateSubstitutionError):
        # oslo.config names what stands behind the dollar sign, which may be a part of a password.
        raise PlacementMisconfigured(
            "nova.conf, [placement]: a $ in a value is taken for the name of an option; write $$"
        ) from None
    except (ksa.ClientException, cfg.Error, ValueError, TypeError) as error:
        raise PlacementMisconfigured(f"nova.conf, [placement]: {error}{_EXAMPLE}") from error
    if auth is None:
        raise PlacementMisconfigured(f"nova.conf, [placement]: auth_type is not set{_EXAMPLE}")
    if missing := _missing_option(conf):
        raise PlacementMisconfigured(f"nova.conf, [placement]: {missing} is not set{_EXAMPLE}")
    if conf[GROUP].insecure:
        # urllib3 would warn at each request. The openstack client leaves these warnings out, too.
        warnings.filterwarnings("ignore", category=InsecureRequestWarning)
        LOG.warning("[placement] insecure is true: no certificate of a service is checked")
    return adapter


def _missing_option(conf: cfg.ConfigOpts) -> str | None:
    """Return an option without which a user with a password cannot log in.

    Other kinds of credentials may name a user, or none, and keystoneauth1 checks their options.
    """
    section = conf[conf[GROUP].auth_section or GROUP]
    if "password" not in section:
        return None
    users = [section[option] for option in ("username", "user_id") if option in section]
    if users and not any(users):
        return "username"
    return None if section["password"] else "password"
