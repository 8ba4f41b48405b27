"""Every fault of a new server for which Placement or cpu-tiers would refuse its request. Pure.

:mod:`cpu_tiers.extra_specs.server_faults` reads the extra specs and image properties; only the
translators know what is wrong with the request groups, such as a missing ``group_policy``.
"""

from collections.abc import Mapping

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator, translate

# Without shares: nova-scheduler does not read the shares of a flavor for the query for NUMA nodes
# by itself, and the shares of NUMA nodes have no faults beside the faults of the flavor's shares.
_NODES = {name: BUILT_IN[name] for name in ("numa", "sizes", "thread_policy", "image_traits")}


def request_faults(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> tuple[Fault, ...]:
    """Return every fault of a server's flavor, image and ports; empty without faults.

    Shares are requested, whether ``server`` says so or not. NUMA nodes are requested only if
    ``server`` says so: without the query for NUMA nodes, nothing is wrong with an amount of memory
    beside the nodes, for example (decision D80).

    :param translators: the translators that are called, by name.
    :raises ExtensionError: two translators claim the same class.
    """
    faults = FaultList()
    faults.faults.extend(server_faults(server.flavor, server.image))
    with faults:
        translate(server._replace(query_vcpu_shares=True, query_numa=False), translators)
    if server.query_numa:
        faults.faults.extend(node_faults(server))
    return tuple(dict.fromkeys(faults.faults))


def node_faults(server: ServerRequest) -> tuple[Fault, ...]:
    """Return the faults of the query for the NUMA nodes of a server; empty without faults.

    The query for a server without NUMA nodes has no faults of its own: the query only leaves
    out the hosts that report NUMA nodes.
    """
    faults = FaultList()
    asking = server._replace(query_numa=True)
    with faults:
        if asking.nodes:
            translate(asking, _NODES)
    return tuple(faults.faults)
