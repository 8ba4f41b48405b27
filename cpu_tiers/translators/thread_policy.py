"""CPU thread policy: from the policy to a required or forbidden trait of the host.

As in Nova, ``require`` needs a host with hyperthreads, and ``isolate`` a host without
hyperthreads. A trait that the flavor or the image states itself is requested by the
flavor's own groups or by the translator ``image_traits``.
"""

from collections.abc import Iterable

from cpu_tiers.extra_specs.cpu_policies import HYPERTHREADING, thread_policy_by_key
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by("nova.scheduler.utils.ResourceRequest._translate_pinning_policies")
def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the unsuffixed group with the trait.

    :raises InvalidInput: the policy is unknown, or flavor and image contradict each
        other.
    """
    # Not thread_policy(): a policy by trait is already requested as a trait.
    policy = thread_policy_by_key(server.flavor, server.image)
    trait = frozenset({HYPERTHREADING})
    if policy == "require":
        return [RequestGroup(required=trait)]
    return [RequestGroup(forbidden=trait)] if policy == "isolate" else []
