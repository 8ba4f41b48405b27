"""The translators that nova-scheduler does not call, because Nova or a seam requests their groups.

As in Nova, DISK_GB is root + ephemeral + swap, with swap rounded up to GiB. An image can only
require traits. The thread policy ``require`` needs a host with hyperthreads, and ``isolate`` a
host without hyperthreads.

Neutron decides the request of a port: bandwidth, packet rates, or only a trait. Each request
becomes a group of its own, for a single provider, whose suffix is the id of the port or of the
port's group. Spec: bandwidth-resource-provider, "Resource request in the port"; decision D7.
"""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.cpu_policies import HYPERTHREADING, thread_policy_by_key
from cpu_tiers.extra_specs.groups import check_trait
from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.contract import ServerRequest, already_requested_by

MOST_GROUPS = 256
"""With more groups, a query may be longer than the 64 KiB that a web server accepts."""


@already_requested_by(
    "nova.scheduler.utils.ResourceRequest.from_request_spec",
    "nova.scheduler.utils.ResourceRequest._translate_pinning_policies",
)
def sizes(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return VCPU, PCPU, MEMORY_MB and DISK_GB of the flavor's sizes.

    If the query requests the NUMA nodes of a guest, the nodes have its CPUs and memory.

    :raises InvalidInput: the CPU policy is unknown, or flavor and image contradict each other.
    """
    flavor, cpus = server.flavor, server.cpus
    amounts = {}
    if not server.nodes:
        amounts[VCPU] = cpus.shared
        amounts[PCPU] = cpus.dedicated + cpus.emulator
        amounts[MEMORY_MB] = flavor.memory_mb
    amounts[DISK_GB] = flavor.root_gb + flavor.ephemeral_gb + -(-flavor.swap_mb // 1024)
    return [RequestGroup(resources={name: n for name, n in amounts.items() if n})]


@already_requested_by("nova.scheduler.utils.ResourceRequest._process_image_meta")
def image_traits(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the traits of ``trait:NAME=required`` of the image.

    :raises InvalidInput: a trait is unknown, or its value is not ``required``.
    """
    image = server.image
    if image is None:
        return []
    faults = FaultList()
    required = set()
    for key, value in image.properties.items():
        if not key.startswith("trait:"):
            continue
        where, name = image.spec(key), key.removeprefix("trait:")
        check_trait(where, name, faults)
        if value != "required":
            faults.add(where, f"got {value!r}", "an image can only require traits: give required")
        required.add(name)
    faults.raise_if_any()
    return [RequestGroup(required=frozenset(required))] if required else []


@already_requested_by("nova.scheduler.utils.ResourceRequest._translate_pinning_policies")
def thread_policy(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the trait of the CPU thread policy.

    :raises InvalidInput: the policy is unknown, or flavor and image contradict each other.
    """
    # A policy by trait is already requested as a trait.
    policy = thread_policy_by_key(server.flavor, server.image)
    trait = frozenset({HYPERTHREADING})
    if policy == "require":
        return [RequestGroup(required=trait)]
    return [RequestGroup(forbidden=trait)] if policy == "isolate" else []


@already_requested_by("nova.scheduler.utils.ResourceRequest._process_requested_resources")
def bandwidth(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of all ports; none for ports that request no resources.

    :raises InvalidInput: a request is malformed, two groups have the same id, an id is
        also a suffix of the flavor, or there are too many groups; all faults at once.
    """
    if not server.ports:
        return []
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


@already_requested_by("cpu_tiers.nova.scheduler.numa.numa_query.SEAMS")
def numa_nodes(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of :func:`cpu_tiers.translators.numa.translate`; none without the option.

    :raises InvalidInput: as that function.
    """
    if not server.query_numa and not server.as_fallback:
        return []
    from cpu_tiers.translators import numa

    return numa.translate(server)
