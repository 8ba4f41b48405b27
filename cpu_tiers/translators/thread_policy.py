"""The trait of a CPU thread policy, which Nova itself requests.

``require`` needs a host with hyperthreads, ``isolate`` a host without hyperthreads.
"""

from collections.abc import Iterable

from cpu_tiers.extra_specs.cpu_policies import (
    HYPERTHREADING,
    sets_thread_policy,
    thread_policy_by_key,
)
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by("nova.scheduler.utils.ResourceRequest._translate_pinning_policies")
def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the trait of the CPU thread policy.

    :raises InvalidInput: the policy is unknown, or flavor and image contradict each other.
    """
    if not sets_thread_policy(server.flavor, server.image):
        return []  # a policy by trait is already requested as a trait
    policy = thread_policy_by_key(server.flavor, server.image)
    trait = frozenset({HYPERTHREADING})
    if policy == "require":
        return [RequestGroup(required=trait)]
    return [RequestGroup(forbidden=trait)] if policy == "isolate" else []
