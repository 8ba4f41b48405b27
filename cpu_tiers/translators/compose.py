"""Merges the groups of all translators and the flavor's own groups into a query."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, FaultList, InvalidInput
from cpu_tiers.extra_specs.groups import GROUP_POLICY, OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import DISK_GB, MAX_AMOUNT, NUMA_SERVER, VCPU_SHARES, host_traits
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree

Contributions = Mapping[str, Iterable[RequestGroup | SameSubtree]]
"""The groups and the same-subtree sets that translators return, by the translator's name."""

_NOTHING = RequestGroup()

DISK = "_DISK"
"""The suffix of the group that requests the disk of a server with NUMA nodes."""


def compose(
    flavor: Flavor,
    own_groups: OwnGroups,
    contributions: Contributions,
    *,
    traits_on_root: bool = False,
) -> CandidateQuery:
    """Return the query of a flavor's own groups and the groups of translators.

    :param traits_on_root: whether suffixed groups request CPUs and memory. The root
        provider may then serve no part of the unsuffixed group, so the traits of the
        unsuffixed group are required of the root provider: see :func:`traits_of_root`.
    :raises InvalidInput: Placement would refuse the query.
    """
    groups, same_subtree = _merge(own_groups, contributions)
    for group in own_groups.groups:
        _add(groups, group, {c: n for c, n in group.resources.items() if n})
    if not groups[""].resources:
        _allow_all_hosts(groups, own_groups)
    query = _query(groups, same_subtree)
    if traits_on_root:
        query = _with_root_apart(query, own_groups.group_policy)
    if own_groups.group_policy:
        query = query._replace(group_policy=own_groups.group_policy)
    elif len(query.groups) > 1:
        query = _with_novas_policy(own_groups, query)
    _check(flavor, query)
    return query


def _with_root_apart(query: CandidateQuery, group_policy: str | None) -> CandidateQuery:
    """Return the query with the traits of the root provider, and with a disk in its own group.

    If the unsuffixed group requests only a disk, it gets the suffix ``_DISK``: hosts may share a
    pool of disks, and if only pools serve the unsuffixed group, Placement 13 to 16 keep the
    candidate of one host or of none (``docs/contributor/upstream/shared-disk.rst``). With
    ``isolate``, the provider of a disk could then serve no other group of the flavor.
    """
    if not query.groups or query.groups[0].suffix:
        return query
    first, *others = query.groups
    required = traits_of_root(first.required, first.resources)
    forbidden = traits_of_root(first.forbidden, first.resources)
    first = first._replace(
        required=first.required - required, forbidden=first.forbidden - forbidden
    )
    if group_policy != "isolate" and first.resources.keys() == {DISK_GB} and not first.has_traits:
        first = first._replace(suffix=DISK)
    if first.resources or first.has_traits:
        others.insert(0, first)
    return query._replace(groups=tuple(others), root_required=required, root_forbidden=forbidden)


def _allow_all_hosts(groups: dict[str, RequestGroup], own_groups: OwnGroups) -> None:
    """Remove the traits of hosts with NUMA nodes from an unsuffixed group without resources.

    Placement answers 400 to traits without resources. Only the suffixed groups of such a server
    have resources, as for bare metal; nova-scheduler leaves the query of the server as it is.
    """
    stated = {
        trait for group in own_groups.groups if not group.suffix for trait in group.forbidden
    }
    forbidden = groups[""].forbidden - ({NODE_TRAIT, NO_NUMA_TRAIT} - stated)
    groups[""] = groups[""]._replace(forbidden=forbidden)


def _with_novas_policy(own_groups: OwnGroups, query: CandidateQuery) -> CandidateQuery:
    """Return the query with ``group_policy=none`` where Nova assumes this policy.

    nova.scheduler.utils.resources_from_request_spec assumes ``none`` if at most one of several
    groups with a suffix is the flavor's own: the remaining groups belong to ports, and the owner
    of a port cannot set a policy.
    """
    own_suffixed = sum(bool(group.suffix) for group in own_groups.groups)
    several = sum(bool(group.suffix) for group in query.groups) > 1
    return query._replace(group_policy="none") if several and own_suffixed <= 1 else query


def traits_of_root(traits: Iterable[str], resources: Iterable[str]) -> frozenset[str]:
    """Return the traits of the unsuffixed group that the root provider must have.

    These are all traits if the group requests only disk and shares. If the group requests other
    resources, only traits of hosts are meant: other traits may describe a device.
    """
    only_hosts = set(resources) <= {DISK_GB, VCPU_SHARES, NUMA_SERVER}
    return frozenset(traits) if only_hosts else host_traits(traits)


def merged_groups(own_groups: OwnGroups, contributions: Contributions) -> CandidateQuery:
    """Return the groups that translators add to a query of Nova for the flavor.

    :raises ExtensionError: two translators request the same class.
    """
    return _query(*_merge(own_groups, contributions))


def _merge(
    own_groups: OwnGroups, contributions: Contributions
) -> tuple[dict[str, RequestGroup], tuple[tuple[str, ...], ...]]:
    """Return the groups of translators by suffix, and the same-subtree sets.

    Resource classes that the flavor states itself are left out.
    """
    stated = frozenset(name for group in own_groups.groups for name in group.resources)
    # The unsuffixed group comes first; without resources and traits it is left out later.
    groups = {"": RequestGroup()}
    requested_by: dict[tuple[str, str], str] = {}
    same_subtree = []
    for name, parts in contributions.items():
        for part in parts:
            if isinstance(part, SameSubtree):
                same_subtree.append(part.suffixes)
                continue
            _refuse_doubles(name, part, requested_by)
            # A port's amounts come from Neutron: the flavor cannot replace them, in Nova either.
            resources = part.resources
            if part.requester_id is None and not stated.isdisjoint(resources):
                resources = {c: n for c, n in resources.items() if c not in stated}
            _add(groups, part, resources)
    return groups, tuple(same_subtree)


def _query(
    groups: Mapping[str, RequestGroup], same_subtree: tuple[tuple[str, ...], ...]
) -> CandidateQuery:
    """Return the query of the groups that request resources or traits."""
    kept = [group for group in groups.values() if group.resources or group.has_traits]
    return CandidateQuery(groups=tuple(kept), same_subtree=same_subtree)


def _refuse_doubles(
    name: str, group: RequestGroup, requested_by: dict[tuple[str, str], str]
) -> None:
    for resource_class in group.resources:
        other = requested_by.setdefault((group.suffix, resource_class), name)
        if other != name:
            raise ExtensionError(
                f"the translators {other!r} and {name!r} both request {resource_class} "
                f"in group {group.suffix!r}; uninstall one of them"
            )


def _add(
    groups: dict[str, RequestGroup], group: RequestGroup, resources: Mapping[str, int]
) -> None:
    """Merge a group, with these resources, into the group of its suffix."""
    earlier = groups.get(group.suffix, _NOTHING)
    groups[group.suffix] = RequestGroup(
        group.suffix,
        {**earlier.resources, **resources},
        earlier.required | group.required,
        earlier.forbidden | group.forbidden,
        earlier.any_of | group.any_of,
        group.requester_id or earlier.requester_id,
    )


def _check(flavor: Flavor, query: CandidateQuery) -> None:
    """Refuse a query that Placement would answer with 400."""
    if not query.groups:
        raise InvalidInput.of(
            f"flavor {flavor.name}", "requests no resources", "keep at least one resource"
        )
    faults = FaultList()
    if root_both := query.root_required & query.root_forbidden:
        with faults:
            check_traits(f"flavor {flavor.name}", root_both)
    in_subtrees = query.in_subtrees
    for group in query.groups:
        with faults:
            check_group(flavor.name, group, in_subtrees)
    suffixed = [group.suffix for group in query.groups if group.suffix]
    for suffix in sorted(in_subtrees.difference(suffixed)):
        where = f"flavor {flavor.name}, same_subtree"
        faults.add(where, f"no group {suffix!r}", "name a group of the query")
    if len(suffixed) > 1 and query.group_policy is None:
        _add_missing_policy(flavor, suffixed, faults)
    faults.raise_if_any()


def check_own_groups(flavor: Flavor, own_groups: OwnGroups, *, needs_policy: bool) -> None:
    """Refuse a flavor's own groups that are wrong whatever groups translators add.

    :param needs_policy: whether a ``group_policy`` is needed for several groups of the flavor.
        A query for NUMA nodes has a policy in any case.
    :raises InvalidInput: a trait is both required and forbidden, or the policy is missing.
    """
    faults = FaultList()
    for group in own_groups.groups:
        with faults:
            check_traits(_place(flavor.name, group), group.required & group.forbidden)
    suffixed = [group.suffix for group in own_groups.groups if group.suffix and group.resources]
    if needs_policy and len(suffixed) > 1 and own_groups.group_policy is None:
        _add_missing_policy(flavor, suffixed, faults)
    faults.raise_if_any()


def _add_missing_policy(flavor: Flavor, suffixed: Sequence[str], faults: FaultList) -> None:
    faults.add(
        flavor.spec(GROUP_POLICY),
        f"not set, with {len(suffixed)} groups: {', '.join(suffixed)}",
        "set none, or set isolate to give each group a provider of its own",
    )


def _place(flavor: str, group: RequestGroup) -> str:
    return f"flavor {flavor}, group {group.suffix!r}" if group.suffix else f"flavor {flavor}"


def check_group(flavor: str, group: RequestGroup, in_subtrees: Container[str] = ()) -> None:
    """Refuse a group that Placement would answer with 400.

    :param in_subtrees: the suffixes of groups that need no resources.
    :raises InvalidInput: the group has no resources, an amount is out of range, or a
        trait is both required and forbidden.
    """
    if both := group.required & group.forbidden:
        check_traits(_place(flavor, group), both)
    if not group.resources and group.suffix not in in_subtrees:
        traits = ", ".join(sorted(group.required.union(group.forbidden, *group.any_of)))
        where = _place(flavor, group)
        raise InvalidInput.of(where, f"traits ({traits}) but no resources", "add a resource")
    for name, amount in group.resources.items():
        if not 1 <= amount <= MAX_AMOUNT:
            where, allowed = _place(flavor, group), f"Placement takes 1 to {MAX_AMOUNT}"
            raise InvalidInput.of(where, f"{amount} of {name}", allowed)


def check_traits(where: str, both: Collection[str]) -> None:
    """Refuse traits that are both required and forbidden.

    :raises ConflictingExtraSpecs: there are such traits.
    """
    if both:
        given = f"{', '.join(sorted(both))} required and forbidden"
        raise ConflictingExtraSpecs.of(where, given, "flavor and image must agree on a trait")
