"""The plugin of the openstack client: the commands ``openstack cpu tier …``.

The client loads this module at each start, so it imports nothing else until a command needs the
cloud. Source: the plugin interface of python-openstackclient, "openstack.cli.extension".
"""

from argparse import ArgumentParser
from os import environ
from typing import Any

API_NAME = "cpu_tiers"
"""The attribute of the client manager that has what :func:`make_client` returns."""

API_VERSION_OPTION = "os_cpu_tiers_api_version"
DEFAULT_API_VERSION = "1"
API_VERSIONS = (DEFAULT_API_VERSION,)
"""The version of the commands: the entry point group is ``openstack.cpu_tiers.v1``."""


def build_option_parser(parser: ArgumentParser) -> ArgumentParser:
    """Add the option that each plugin of the client has."""
    parser.add_argument(
        "--os-cpu-tiers-api-version",
        metavar="<cpu-tiers-api-version>",
        default=environ.get("OS_CPU_TIERS_API_VERSION", DEFAULT_API_VERSION),
        help="version of the commands of cpu-tiers, default: 1 (Env: OS_CPU_TIERS_API_VERSION)",
    )
    return parser


def make_client(client_manager: Any) -> object:
    """Return the services of the cloud (:class:`~cpu_tiers.http.services.Services`).

    The client calls this function when a command first asks for ``client_manager.cpu_tiers``.
    """
    from cpu_tiers.http.openstack_client import services_of_client

    return services_of_client(client_manager.session, client_manager.sdk_connection.config)
