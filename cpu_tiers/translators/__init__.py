"""From the flavor, the image and the ports of a server to a query for candidates.

:func:`translate` calls every translator (see :mod:`cpu_tiers.translators.contract`)
and merges the request groups of the translators with the groups of the flavor itself
into a :class:`~cpu_tiers.model.request.CandidateQuery`. Pure, and fast to import:
neither keystoneauth1 nor stevedore is imported.
"""

from collections.abc import Mapping

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree
from cpu_tiers.translators import bandwidth, image_traits, numa_nodes, shares, sizes, thread_policy
from cpu_tiers.translators.compose import check_own_groups, compose, merged_groups
from cpu_tiers.translators.contract import ServerRequest, Translator

__all__ = ["BUILT_IN", "ServerRequest", "Translator", "added_groups", "fallback", "translate"]

BUILT_IN: Mapping[str, Translator] = {
    "bandwidth": bandwidth.translate,
    "image_traits": image_traits.translate,
    "numa": numa_nodes.translate,
    "shares": shares.translate,
    "sizes": sizes.translate,
    "thread_policy": thread_policy.translate,
}
"""The translators of cpu-tiers itself, by the names of their entry points.

nova-scheduler calls the translators without the mark
:func:`~cpu_tiers.translators.contract.already_requested_by`.
"""


def translate(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> CandidateQuery:
    """Return the query for a server.

    :param translators: the translators by name;
        ``cpu_tiers.extensions.load("cpu_tiers.translators")`` returns the translators
        of all installed distributions.
    :raises InvalidInput: with every fault of flavor, image and ports.
    :raises ExtensionError: two translators request the same class.
    """
    faults = FaultList()
    with faults:
        server.own_groups  # noqa: B018  # read here, so that its faults come first
    contributions = _contributions(server, translators, faults)
    if faults.faults:
        with faults:
            check_own_groups(server.flavor, server.own_groups, needs_policy=not server.query_numa)
        faults.raise_if_any()
    own_groups = server.own_groups
    if server.nodes:
        from cpu_tiers.translators import numa  # few servers have NUMA nodes

        own_groups = numa.own_groups(server)
    return compose(server.flavor, own_groups, contributions, traits_on_root=bool(server.nodes))


def fallback(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> CandidateQuery | None:
    """Return the query for hosts that may have servers with NUMA nodes and do not report nodes.

    Spec: numa-topology-with-rps, "The fallback case for NUMA-aware flavors". The result
    is ``None`` if :func:`translate` requests no NUMA nodes for the server, because a
    single query is enough then.

    :raises InvalidInput, ExtensionError: as :func:`translate`.
    """
    # Without NUMA nodes in the query, there is nothing to fall back from.
    return translate(server._replace(as_fallback=True), translators) if server.nodes else None


def added_groups(server: ServerRequest, translators: Mapping[str, Translator]) -> CandidateQuery:
    """Return the groups that translators add to a query of Nova for the flavor.

    The flavor's own groups are read only if a translator returns any groups.

    :raises InvalidInput: with the faults of all translators.
    :raises ExtensionError: two translators request the same class.
    """
    faults = FaultList()
    contributions = _contributions(server, translators, faults)
    faults.raise_if_any()
    if not any(contributions.values()):
        return CandidateQuery(groups=())
    return merged_groups(server.own_groups, contributions)


def _contributions(
    server: ServerRequest, translators: Mapping[str, Translator], faults: FaultList
) -> Mapping[str, tuple[RequestGroup | SameSubtree, ...]]:
    """Return the groups of each translator by the translator's name, and collect all faults."""
    contributions = {}
    for name, translator in translators.items():
        try:
            contributions[name] = tuple(translator(server))
        except InvalidInput as error:
            faults.collect(error)
    return contributions
