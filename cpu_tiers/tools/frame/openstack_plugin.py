"""The plugin of the openstack client: the commands ``openstack cpu tier …``.

At each start the client loads this module and the entry points of all commands, also for a command
of others. So the entry points name classes of this module, which import a command when the client
runs the command or shows its help. Each class is made when the client asks for it.

Source: the plugin interface of python-openstackclient, "openstack.cli.extension".
"""

from argparse import ArgumentParser
from os import environ
from typing import Any

from cpu_tiers.tools import load
from cpu_tiers.tools.frame.command_table import commands

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
    """Return the services of the cloud (:class:`~cpu_tiers.tools.http.services.Services`).

    The client calls this function when a command first asks for ``client_manager.cpu_tiers``.
    """
    from cpu_tiers.tools.http.services import services_of_client

    return services_of_client(client_manager.session, client_manager.sdk_connection.config)


def __getattr__(name: str) -> type:
    """Return a class whose call imports the command with this class, and creates the command.

    :param name: the name of the class of a command of ``cpu-tiers``.
    """
    by_class = {command.attr: command.module for command in commands().values()}
    if name not in by_class:
        raise AttributeError(f"{__name__} has no command {name}")

    # cliff reads the parameters of the constructor.
    def create(_: type, app: Any, app_args: Any, cmd_name: str | None = None) -> Any:
        command = getattr(load(by_class[name].removeprefix("cpu_tiers.tools.")), name)
        return command(app, app_args, cmd_name)

    return type(name, (), {"__new__": create, "__init__": create, "__module__": __name__})
