"""The resources of ports, which Nova itself requests: bandwidth, packet rates, or only a trait.

Neutron decides the request of a port. Each request becomes a group of its own, for a single
provider, whose suffix is the id of the port or of the port's group.
Spec: bandwidth-resource-provider, "Resource request in the port"; decision D7.
"""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.contract import ServerRequest, already_requested_by

MOST_GROUPS = 256
"""With more groups, a query may be longer than the 64 KiB that a web server accepts."""


@already_requested_by("nova.scheduler.utils.ResourceRequest._process_requested_resources")
def translate(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of all ports; none for ports that request no resources.

    :raises InvalidInput: a request is malformed, two groups have the same id, an id is
        also a suffix of the flavor, or there are too many groups; all faults at once.
    """
    return _groups_of_ports(server) if server.ports else []


def _groups_of_ports(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    faults = FaultList()
    parts: list[RequestGroup | SameSubtree] = []
    # A port whose id is a suffix of the flavor would be merged into the flavor's group.
    taken = {group.suffix: "the flavor" for group in server.own_groups.groups}
    for port in server.ports:
        with faults:
            request = port.request
            for group in request.groups:
                if group.suffix in taken:
                    faults.add(
                        f"port {port.id}",
                        f"{taken[group.suffix]} also has a group {group.suffix}",
                        "each group needs an id of its own; give each port once",
                    )
                taken[group.suffix] = f"port {port.id}"
            parts += request.groups
            parts += request.same_subtree
    count = sum(isinstance(part, RequestGroup) for part in parts)
    if count > MOST_GROUPS:
        faults.add("ports", f"{count} request groups", f"a query may have up to {MOST_GROUPS}")
    faults.raise_if_any()
    return parts
