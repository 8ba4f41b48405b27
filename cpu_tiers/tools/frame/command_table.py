"""The commands of ``cpu-tiers``, and the module and the class of each.

The entry points of the openstack client name the commands that the client has, because the client
reads only entry points; their classes come from this table.
"""

import re
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

_CLASSES = {
    "allocation heal": "writers.allocation_heal:AllocationHeal",
    "capacity": "cloud.capacity:Capacity",
    "cloud requests": "cloud.cloud_requests:CloudRequests",
    "cloud show": "cloud.cloud_show:CloudShow",
    "cloud snapshot": "cloud.cloud_snapshot:CloudSnapshot",
    "demo": "demo:Demo",
    "domain show": "host.domain_show:DomainShow",
    "explain": "cloud.explain:Explain",
    "flavor check": "cloud.flavor_check:FlavorCheck",
    "flavor pair": "cloud.flavor_pair:FlavorPair",
    "flavor show": "cloud.flavor_show:FlavorShow",
    "host audit": "host.audit:HostAudit",
    "host pressure": "writers.host_pressure:HostPressure",
    "host show": "host.host_show:HostShow",
    "host watch": "host.watch:HostWatch",
    "inventory show": "writers.inventory:InventoryShow",
    "inventory sync": "writers.inventory:InventorySync",
    "networking show": "writers.networking:NetworkingShow",
    "networking sync": "writers.networking:NetworkingSync",
    "placement check": "writers.placement_check:PlacementCheck",
    "plan check": "plan.check_command:PlanCheck",
    "plan drain": "plan.drain_command:PlanDrain",
    "plan relieve": "plan.relieve_command:PlanRelieve",
    "plan room": "plan.room_command:PlanRoom",
    "plan survive": "plan.survive_command:PlanSurvive",
    "request show": "cloud.request_show:RequestShow",
    "reshape apply": "writers.reshape:ReshapeApply",
    "reshape plan": "writers.reshape:ReshapePlan",
    "simulate": "cloud.simulate:Simulate",
    "weigh": "cloud.weigh:Weigh",
}
"""In :mod:`cpu_tiers.tools`."""


def commands() -> dict[str, EntryPoint]:
    """Return the commands by name. ``load`` of a command imports its module."""
    return {
        name: EntryPoint(name, f"cpu_tiers.tools.{target}", "cpu_tiers.commands")
        for name, target in _CLASSES.items()
    }


def description(command: EntryPoint) -> str:
    """Return the first line of the docstring of a command, without importing the command.

    The list of all commands would import nearly everything that a command needs.
    """
    spec = find_spec(command.module)
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    # Python's own parser would take as long as the rest of the help.
    docstring = rf'^class {command.attr}\b.*?"""(.*?)(?:"""|\n)'
    found = re.search(docstring, source, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""
