"""The functions of Nova in whose wrapper cpu-tiers takes several steps, in the order of the steps.

A step is a function of the module that the list names. The first step of a list is called first,
and calls what is left of the list, which ends with Nova's function. The module makes the seam of
its step with the function of this module, so the seam is imported only with its option.
"""

from collections.abc import Callable

from cpu_tiers.nova.seams import Function, Seam, seam


def _steps(function: str, parameters: str, *steps: str) -> Callable[[Function], Seam]:
    def of_step(step: Function) -> Seam:
        place = steps.index(step.__module__.removeprefix("cpu_tiers.nova."))
        return seam(function, parameters, step, place=place)

    return of_step


request = _steps(
    "nova.scheduler.utils:ResourceRequest.from_request_spec",
    "cls, request_spec, enable_pinning_translate=True",
    "api.shares_quota",  # adds the shares that no later step has requested; only in nova-api
    "scheduler.port_traits",  # notes the groups of ports: before it, the others add no group
    "scheduler.host_traits",  # requires traits; a fault in the flavor is refused by the next step
    "scheduler.resource_request",  # adds the groups of translators
)
scheduler_request = _steps(
    "nova.scheduler.utils:resources_from_request_spec",
    "ctxt, spec_obj, host_manager, enable_pinning_translate=True",
    "scheduler.reasons.decisions",  # notes the query as the next step has changed it
    "scheduler.numa.numa_query",  # requests NUMA nodes, or avoids hosts with NUMA nodes
)
candidates = _steps(
    "nova.scheduler.client.report:SchedulerReportClient.get_allocation_candidates",
    "self, context, resources",
    "scheduler.reasons.lacking_constraints",  # looks at the joined answer of all queries
    "scheduler.numa.joined_answers",  # sends several queries, and joins their answers
    "custom_names",  # creates the names of each query
    "port_queries",  # puts the groups of ports into the form that Placement understands
)
sorted_hosts = _steps(
    "nova.scheduler.manager:SchedulerManager._get_sorted_hosts",
    "self, spec_obj, host_states, index",
    "scheduler.numa.next_candidate",  # keeps the candidates, and replaces the first of each host
    "scheduler.numa.candidate_order",  # orders the candidates, and knows them by their identity
)
claim = _steps(
    "nova.scheduler.utils:claim_resources",
    "ctx, client, spec_obj, instance_uuid, alloc_req, allocation_request_version=None",
    "scheduler.numa.next_candidate",  # claims the next candidate of the host
    "scheduler.reasons.decisions",  # notes each claim
)
consume = _steps(
    "nova.scheduler.host_manager:HostState.consume_from_request",
    "self, spec_obj",
    "scheduler.numa.candidate_order",  # replaces the candidates that the others have consumed
    "numa.numa_fit",  # has Nova consume the host cells of the first candidate
    "scheduler.scores",  # subtracts the first candidate from the scores
)
