"""A cloud in memory: the hosts with room for a server, and the room left by a claim.

``docs/reference/simulated-placement.rst`` has an example. Pure: no I/O, no configuration, no Nova.
"""

from cpu_tiers.model.providers import Provider as CloudProvider
from cpu_tiers.tools.cloud_model.cloud import Allocations, ClaimRefused, Search, SimulatedCloud

__all__ = ["Allocations", "ClaimRefused", "CloudProvider", "Search", "SimulatedCloud"]
