"""From nova.conf's own ``[placement]`` section to a client.

The options are keystoneauth1's, with the defaults that Nova gives them, so the
section that serves nova-compute serves here too. Two differences:

* ``timeout`` is 20 seconds where it is not set. Nova waits for ever then, and
  a silent Placement would hang a command for ever.
* ``connect_retries`` and ``status_code_retries`` have no effect; how long to
  try again is :class:`~cpu_tiers.placement.exchange.Patience`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.embedded import embedded_placement
from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.placement.exchange import Patience

GROUP = "placement"
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
    """Register the options of ``[placement]``, but for those of the auth plugin."""
    loading.register_auth_conf_options(conf, GROUP)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_adapter_conf_options(conf, GROUP)
    conf.set_default("service_type", "placement", GROUP)
    conf.set_default("valid_interfaces", ["internal", "public"], GROUP)


@contextmanager
def connect(
    conf: cfg.ConfigOpts, *, embedded: bool = False, patience: Patience | None = None
) -> Iterator[PlacementClient]:
    """Yield a client of the Placement that ``[placement]`` names.

    Nothing is sent before the client's first verb.

    :param conf: a configuration whose files have been read.
    :param embedded: run one inside the process instead; ``conf`` is not read then.
    :raises PlacementMisconfigured: the section is missing or incomplete.
    """
    if embedded:
        with embedded_placement() as client:
            yield client
        return
    adapter = load_adapter(conf)
    try:
        yield PlacementClient(adapter, patience=patience)
    finally:
        adapter.session.session.close()


def load_adapter(conf: cfg.ConfigOpts) -> Adapter:
    """Return the keystoneauth1 adapter that ``[placement]`` describes.

    :raises PlacementMisconfigured: the section is missing or incomplete.
    """
    try:
        register_opts(conf)
        auth = loading.load_auth_from_conf_options(conf, GROUP)
        timeout = conf[GROUP].timeout or TIMEOUT_SECONDS
        session = loading.load_session_from_conf_options(conf, GROUP, auth=auth, timeout=timeout)
        adapter = loading.load_adapter_from_conf_options(conf, GROUP, session=session)
    except (ksa.ClientException, cfg.Error, ValueError, TypeError) as error:
        raise PlacementMisconfigured(f"nova.conf, [placement]: {error}{_EXAMPLE}") from error
    if auth is None:
        raise PlacementMisconfigured(f"nova.conf, [placement]: auth_type is not set{_EXAMPLE}")
    return adapter
