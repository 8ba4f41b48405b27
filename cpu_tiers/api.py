"""What a scheduler, a virt driver or a plugin of another distribution imports.

The names of this module are a promise (``docs/reference/library.rst``); the modules from which
the names come may change in any release. A name that needs lxml or Nova is imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.guest.pinning import DoesNotFit, pin
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.guest import GuestTopology, Pinning
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.weights import CandidateHost, Forest, RequestedServer, make_forest

if TYPE_CHECKING:
    from cpu_tiers.libvirt.contract import Guest
    from cpu_tiers.nova.convert_numa import to_compute_host, to_guest_topology, to_pinning

__all__ = [
    "CandidateHost",
    "CandidateQuery",
    "ComputeHost",
    "CpuSet",
    "DoesNotFit",
    "Flavor",
    "Forest",
    "Guest",
    "GuestTopology",
    "Host",
    "HostTopology",
    "Image",
    "InvalidInput",
    "Inventory",
    "InventoryOptions",
    "NumaCell",
    "Pages",
    "Pinning",
    "ProviderTree",
    "RequestGroup",
    "RequestedServer",
    "ResourceProvider",
    "SameSubtree",
    "ServerRequest",
    "build_tree",
    "guest_cpus",
    "guest_topology",
    "make_forest",
    "pin",
    "server_faults",
    "to_compute_host",
    "to_guest_topology",
    "to_pinning",
    "translate",
]

_AT_FIRST_USE = {
    "Guest": "cpu_tiers.libvirt.contract",
    "to_compute_host": "cpu_tiers.nova.convert_numa",
    "to_guest_topology": "cpu_tiers.nova.convert_numa",
    "to_pinning": "cpu_tiers.nova.convert_numa",
}


def __getattr__(name: str) -> Any:
    """Return a name that needs lxml or Nova (PEP 562).

    :raises AttributeError: there is no such name.
    :raises ImportError: lxml or Nova is not installed.
    """
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)
