"""Flavor, image and ports to one Placement query.

``translate`` asks every translator (see :mod:`cpu_tiers.translators.contract`)
and puts what they claim and what the flavor states itself into one
:class:`~cpu_tiers.model.request.CandidateQuery`. Pure, and cheap to import:
neither keystoneauth1 nor stevedore is loaded.
"""

from collections.abc import Mapping

from cpu_tiers.errors import FaultList
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree
from cpu_tiers.translators import bandwidth, image_traits, numa, shares, sizes, thread_policy
from cpu_tiers.translators.compose import claimed, compose
from cpu_tiers.translators.contract import ServerRequest, Translator

__all__ = ["BUILT_IN", "ServerRequest", "Translator", "claims", "fallback", "translate"]

BUILT_IN: Mapping[str, Translator] = {
    "bandwidth": bandwidth.translate,
    "image_traits": image_traits.translate,
    "numa": numa.translate,
    "shares": shares.translate,
    "sizes": sizes.translate,
    "thread_policy": thread_policy.translate,
}
"""The translators of cpu-tiers itself, by the names of their entry points.

nova-scheduler calls those without the mark
:func:`~cpu_tiers.translators.contract.already_requested_by`.
"""


def translate(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> CandidateQuery:
    """Return the query for one server.

    :param translators: by name; those of all installed distributions are
        ``cpu_tiers.extensions.load("cpu_tiers.translators")``.
    :raises InvalidInput: with every fault of flavor, image and ports.
    :raises ExtensionError: two translators claim the same class.
    """
    faults = FaultList()
    with faults:
        server.own_groups  # noqa: B018  # its faults come first, and once
    contributions = _contributions(server, translators, faults)
    own, has_nodes = numa.own_groups(server), bool(server.nodes)
    return compose(server.flavor, own, contributions, traits_on_root=has_nodes)


def fallback(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> CandidateQuery | None:
    """Return the query for hosts that do not report the nodes that a server asks for.

    Spec: numa-topology-with-rps, "The fallback case for NUMA-aware flavors".
    ``None`` where the server asks for no nodes, and one query tells all.

    :raises InvalidInput, ExtensionError: as :func:`translate`.
    """
    return translate(server._replace(as_fallback=True), translators) if server.nodes else None


def claims(server: ServerRequest, translators: Mapping[str, Translator]) -> CandidateQuery:
    """Return what translators add to a query that somebody else makes of the flavor.

    The flavor's own groups are not looked at unless there is something to add.

    :raises InvalidInput: with every fault that the translators found.
    :raises ExtensionError: two translators claim the same class.
    """
    contributions = _contributions(server, translators, FaultList())
    if not any(contributions.values()):
        return CandidateQuery(groups=())
    return claimed(server.own_groups, contributions)


def _contributions(
    server: ServerRequest, translators: Mapping[str, Translator], faults: FaultList
) -> Mapping[str, tuple[RequestGroup | SameSubtree, ...]]:
    """Return the groups of each translator, or raise ``faults`` and theirs together."""
    contributions = {}
    for name, translator in translators.items():
        with faults:
            contributions[name] = tuple(translator(server))
    faults.raise_if_any()
    return contributions
