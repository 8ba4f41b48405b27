"""The hosts of Placement whose nova-compute takes servers, by Nova's API.

Placement keeps the provider of a renamed, removed or failed host, on which nova-scheduler places
no server. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SERVICE = "nova-compute"
UP = "nova-compute that is up"
ENABLED = "nova-compute that is enabled"
"""The names of the constraints that Nova's ``ComputeFilter`` has for each host."""


class ComputeService(NamedTuple):
    """The nova-compute service of a host.

    :param nodes: the uuids or the names of the compute nodes; empty if only ``host`` is known.
    :param host: the name of the host in Nova, which a provider may have with a domain behind.
    """

    host: str
    is_up: bool
    is_enabled: bool
    nodes: tuple[str, ...] = ()

    @property
    def lacking(self) -> str | None:
        """Return what the host lacks for a server; ``None`` for nothing."""
        if not self.is_up:
            return UP
        return None if self.is_enabled else ENABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStates:
    """What Nova says of the hosts of a cloud.

    :param lacking: by the root provider, what keeps nova-scheduler from a host.
    :param unknown: why Nova's answer is missing; empty if Nova has answered.
    """

    lacking: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""

    @property
    def strangers(self) -> frozenset[str]:
        """Return the root providers without a nova-compute: of renamed or removed hosts."""
        return frozenset(root for root, name in self.lacking.items() if name == SERVICE)

    @property
    def down(self) -> frozenset[str]:
        """Return the root providers of hosts whose nova-compute is down."""
        return frozenset(root for root, name in self.lacking.items() if name == UP)

    @property
    def note(self) -> str:
        """Return what an answer did not look at, to follow a number of hosts."""
        return "; Nova was not asked which of them are up" if self.unknown else ""


ALL_UP = ServiceStates()
NOT_ASKED = ServiceStates(unknown="Nova was not asked")


def service_states(roots: Mapping[str, str], services: Iterable[ComputeService]) -> ServiceStates:
    """Return the states of hosts.

    :param roots: the names of the hosts by the uuid of the root provider.
    :param services: of all hosts. A service without compute nodes is of the provider with its
        name, or else of the only provider with its name before a domain.
    """
    by_name = {name: root for root, name in roots.items()}
    lacking = dict.fromkeys(roots, SERVICE)
    states: dict[str, str | None] = {}
    for service in services:
        for node in service.nodes or _nodes_named(service.host, by_name):
            states[by_name.get(node, node)] = service.lacking
    known = {root: state for root, state in states.items() if root in lacking}
    if roots and not known:
        return ServiceStates(unknown="Nova names no compute node that Placement has")
    lacks = {**lacking, **known}
    return ServiceStates(lacking={root: name for root, name in lacks.items() if name is not None})


def _nodes_named(host: str, by_name: Mapping[str, str]) -> tuple[str, ...]:
    if host in by_name:
        return (host,)
    longer = [name for name in by_name if name.partition(".")[0] == host]
    return tuple(longer) if len(longer) == 1 else ()
