"""VCPU, PCPU, MEMORY_MB and DISK_GB: the sizes of a flavor, which Nova itself requests.

As in Nova, DISK_GB is root + ephemeral + swap, with swap rounded up to GiB.
"""

from collections.abc import Iterable

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by(
    "nova.scheduler.utils.ResourceRequest.from_request_spec",
    "nova.scheduler.utils.ResourceRequest._translate_pinning_policies",
)
def translate(server: ServerRequest) -> Iterable[RequestGroup]:
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
