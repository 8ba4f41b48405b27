"""The thread policy, to the trait that a host must or must not have.

As in Nova: ``require`` needs a host with hyperthreads, ``isolate`` one
without. A trait that the flavor or the image states itself is asked for as it
stands.
"""

from collections.abc import Iterable

from cpu_tiers.extra_specs.thread_policy import HYPERTHREADING, policy_by_key
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by("nova.scheduler.utils.ResourceRequest._translate_pinning_policies")
def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the trait.

    :raises InvalidInput: the thread policy is unknown or contradicts itself.
    """
    policy = policy_by_key(server.flavor, server.image)
    trait = frozenset({HYPERTHREADING})
    if policy == "require":
        return [RequestGroup(required=trait)]
    return [RequestGroup(forbidden=trait)] if policy == "isolate" else []
