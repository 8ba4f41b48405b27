"""The plugin of the openstack client: the commands ``openstack cpu tier …``.

At each start the client loads this module and the entry points of all commands, also for a command
of others. So the entry points name classes of this module, which import a command when the client
runs the command or shows its help.

Source: the plugin interface of python-openstackclient, "openstack.cli.extension".
"""

from argparse import ArgumentParser
from os import environ
from typing import Any

from cpu_tiers.tools import load

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


def _command(module: str, name: str) -> type:
    """Return a class whose call imports a command of :mod:`cpu_tiers.tools`, and creates it."""

    # cliff reads the parameters of the constructor.
    def create(_: type, app: Any, app_args: Any, cmd_name: str | None = None) -> Any:
        command = getattr(load(module), name)
        return command(app, app_args, cmd_name)

    return type(name, (), {"__new__": create, "__init__": create, "__module__": __name__})


AllocationHeal = _command("writers.allocation", "AllocationHeal")
Capacity = _command("cloud.capacity", "Capacity")
CloudShow = _command("cloud.cloud_show", "CloudShow")
CloudSnapshot = _command("cloud.cloud_snapshot", "CloudSnapshot")
Explain = _command("cloud.explain", "Explain")
FlavorCheck = _command("cloud.flavor_check", "FlavorCheck")
FlavorPair = _command("cloud.flavor_pair", "FlavorPair")
HostPressure = _command("writers.pressure", "HostPressure")
InventorySync = _command("writers.inventory", "InventorySync")
NetworkingShow = _command("writers.networking", "NetworkingShow")
NetworkingSync = _command("writers.networking", "NetworkingSync")
PlacementCheck = _command("writers.placement_check", "PlacementCheck")
PlanDrain = _command("plan.commands", "PlanDrain")
PlanRelieve = _command("plan.commands", "PlanRelieve")
PlanRoom = _command("plan.commands", "PlanRoom")
PlanSurvive = _command("plan.commands", "PlanSurvive")
RequestShow = _command("cloud.request", "RequestShow")
ReshapeApply = _command("writers.reshape", "ReshapeApply")
ReshapePlan = _command("writers.reshape", "ReshapePlan")
Weigh = _command("cloud.weigh", "Weigh")
