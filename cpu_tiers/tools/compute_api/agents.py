"""Reads the agents of a host from Neutron.

Source: Neutron API reference, ``GET /v2.0/agents``.
"""

from urllib.parse import urlencode

from cpu_tiers.tools.compute_api.answers import NEUTRON, Wanted, get, part
from cpu_tiers.tools.compute_api.lookup import Document
from cpu_tiers.tools.http.services import Services

_AGENTS = Wanted(NEUTRON, "agents", "a list of agents")


def read_agents(services: Services, host: str) -> tuple[Document, ...]:
    """Return the agents of a host. Neutron shows agents only to administrators.

    :raises ComputeApiUnavailable: Neutron does not answer.
    """
    path = f"/v2.0/agents?{urlencode({'host': host}, errors='replace')}"
    agents = part(get(services, path, _AGENTS), "agents", list, path, _AGENTS)
    return tuple(agent for agent in agents if isinstance(agent, dict))
