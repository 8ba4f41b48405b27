"""The NUMA nodes of a guest, if the query has them: a seam of nova-scheduler requests the groups.

:mod:`cpu_tiers.translators.numa` is imported with the first server that needs it.
"""

from collections.abc import Iterable

from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.contract import ServerRequest, already_requested_by


@already_requested_by("cpu_tiers.nova.scheduler.numa.numa_query.SEAMS")
def translate(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of :func:`cpu_tiers.translators.numa.translate`; none without the option.

    :raises InvalidInput: as that function.
    """
    if not server.query_numa and not server.as_fallback:
        return []
    from cpu_tiers.translators import numa

    return numa.translate(server)
