"""Bandwidth: from a server's ports to request groups.

Spec: bandwidth-resource-provider, "Resource request in the port"; decision D7.
What a port asks for is Neutron's to say, be it bandwidth, packets or a trait
alone: each request becomes a group of its own, for one provider. The suffix is
that of Nova, the id of the port or of its group.
"""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.contract import ServerRequest, already_requested_by

MOST_GROUPS = 256
"""More than that make a query longer than the 64 KiB that a web server may take."""


@already_requested_by("nova.scheduler.utils.ResourceRequest._process_requested_resources")
def translate(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of all ports; none for ports that ask for nothing.

    :raises InvalidInput: a malformed request, two groups of one id, an id that
        the flavor has as a suffix, or too many groups; all at once.
    """
    if not server.ports:
        return []
    faults = FaultList()
    parts: list[RequestGroup | SameSubtree] = []
    taken = {group.suffix: "the flavor" for group in server.own_groups.groups}
    for port in server.ports:
        with faults:
            request = port.request
            for group in request.groups:
                if group.suffix in taken:
                    faults.add(
                        f"port {port.id}",
                        f"its group {group.suffix} is one of {taken[group.suffix]}, too",
                        "each group needs an id of its own; give each port once",
                    )
                taken[group.suffix] = f"port {port.id}"
            parts += request.groups
            parts += request.same_subtree
    count = sum(isinstance(part, RequestGroup) for part in parts)
    if count > MOST_GROUPS:
        faults.add("ports", f"{count} request groups", f"one query takes up to {MOST_GROUPS}")
    faults.raise_if_any()
    return parts
