"""A cloud in memory: the hosts with room for a server, and the room left by a claim.

:class:`SimulatedCloud` answers queries as Placement does, for thousands of requests a minute::

    from cpu_tiers.model.flavor import Flavor
    from cpu_tiers.model.inventory import Inventory
    from cpu_tiers.tools.simulation import CloudProvider, SimulatedCloud
    from cpu_tiers.translators import ServerRequest, translate

    cpus = Inventory(total=8, max_unit=8, allocation_ratio=2.0)
    memory = Inventory(total=4096, max_unit=4096, reserved=512)
    cloud = SimulatedCloud([CloudProvider(
        uuid="a", name="host-a", inventories={"VCPU": cpus, "MEMORY_MB": memory}
    )])
    query = translate(ServerRequest(flavor=Flavor(name="small", vcpus=2, memory_mb=1024)))

    answer = cloud.candidates(query)      # a CandidatesAnswer, as cpu_tiers.weights reads it
    allocations = answer.allocation_requests[0].allocations
    cloud.claim(allocations)              # the server arrives
    cloud.release(allocations)            # the server departs

For many requests with few queries, keep a :class:`Search` for each query. It works out only the
hosts that have changed since the last request, and returns the hosts that have to be weighed
again::

    search = cloud.search(query, each_order=False)
    for root in search.refresh():         # the hosts that have changed; all hosts at first
        scores[root] = weigh(cloud.summaries([root]))
    best = max(search.hosts(), key=scores.__getitem__)
    cloud.claim(search.requests(best)[0].allocations)

Pure: no I/O, no configuration, no Nova.
"""

from cpu_tiers.model.providers import Provider as CloudProvider
from cpu_tiers.tools.simulation.cloud import Allocations, ClaimRefused, Search, SimulatedCloud

__all__ = ["Allocations", "ClaimRefused", "CloudProvider", "Search", "SimulatedCloud"]
