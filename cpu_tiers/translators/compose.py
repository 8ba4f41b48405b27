"""Merges the groups of all translators and the flavor's own groups into a query."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, FaultList, InvalidInput
from cpu_tiers.extra_specs.groups import GROUP_POLICY, OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import DISK_GB, MAX_AMOUNT, NUMA_SERVER, VCPU_SHARES, host_traits
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT
from cpu_tiers.model.request import CandidateQuery, GroupDraft, RequestGroup, SameSubtree

Contributions = Mapping[str, Iterable[RequestGroup | SameSubtree]]
"""The groups and the same-subtree sets that translators return, by the translator's name."""

_NO_TRAITS = RequestGroup()

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
    drafts, same_subtree = _merge(own_groups, contributions)
    for group in own_groups.groups:
        _add(drafts, group, {c: n for c, n in group.resources.items() if n})
    _allow_all_hosts(drafts[""], own_groups)
    root = _take_root_traits(drafts[""]) if traits_on_root else _NO_TRAITS
    query = _query(drafts, same_subtree, own_groups.group_policy, root)
    # With isolate, the provider of a disk could serve no other group of the flavor.
    if traits_on_root and own_groups.group_policy != "isolate":
        query = query._replace(groups=tuple(map(_with_disk_apart, query.groups)))
    query = _with_novas_policy(own_groups, query)
    _check(flavor, query)
    return query


def _with_disk_apart(group: RequestGroup) -> RequestGroup:
    """Return the group, with the suffix ``_DISK`` if it is unsuffixed and requests only a disk.

    Hosts may share a pool of disks. If only pools serve the unsuffixed group, Placement 13 to 16
    keep the candidate of one host or of none (``docs/contributor/upstream/shared-disk.rst``).
    """
    if group.suffix or group.resources.keys() != {DISK_GB} or group.has_traits:
        return group
    return group._replace(suffix=DISK)


def _allow_all_hosts(unsuffixed: GroupDraft, own_groups: OwnGroups) -> None:
    """Remove the traits of hosts with NUMA nodes from an unsuffixed group without resources.

    Placement answers 400 to traits without resources. Only the suffixed groups of such a server
    have resources, as for bare metal; nova-scheduler leaves the query of the server as it is.
    """
    if not unsuffixed.resources:
        stated = {
            trait for group in own_groups.groups if not group.suffix for trait in group.forbidden
        }
        unsuffixed.forbidden -= {NODE_TRAIT, NO_NUMA_TRAIT} - stated


def _with_novas_policy(own_groups: OwnGroups, query: CandidateQuery) -> CandidateQuery:
    """Return the query with ``group_policy=none`` where Nova assumes this policy.

    nova.scheduler.utils.resources_from_request_spec assumes ``none`` if at most one of several
    groups with a suffix is the flavor's own: the remaining groups belong to ports, and the owner
    of a port cannot set a policy.
    """
    if query.group_policy is not None or len(query.groups) == 1:
        return query
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


def _take_root_traits(draft: GroupDraft) -> RequestGroup:
    required = traits_of_root(draft.required, draft.resources)
    forbidden = traits_of_root(draft.forbidden, draft.resources)
    draft.required -= required
    draft.forbidden -= forbidden
    return RequestGroup(required=required, forbidden=forbidden)


def merged_groups(own_groups: OwnGroups, contributions: Contributions) -> CandidateQuery:
    """Return the groups that translators add to a query of Nova for the flavor.

    :raises ExtensionError: two translators request the same class.
    """
    return _query(*_merge(own_groups, contributions))


def _merge(
    own_groups: OwnGroups, contributions: Contributions
) -> tuple[dict[str, GroupDraft], tuple[tuple[str, ...], ...]]:
    """Return the groups of translators by suffix, and the same-subtree sets.

    Resource classes that the flavor states itself are left out.
    """
    stated = frozenset(name for group in own_groups.groups for name in group.resources)
    # The unsuffixed group comes first; without resources and traits it is left out later.
    drafts = {"": GroupDraft()}
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
            _add(drafts, part, resources)
    return drafts, tuple(same_subtree)


def _query(
    drafts: Mapping[str, GroupDraft],
    same_subtree: tuple[tuple[str, ...], ...],
    group_policy: str | None = None,
    root: RequestGroup = _NO_TRAITS,
) -> CandidateQuery:
    """Return the query of the groups that request resources or traits.

    :param root: the traits that the root provider must have or must not have.
    """
    frozen = [draft.freeze(suffix) for suffix, draft in drafts.items()]
    return CandidateQuery(
        groups=tuple([group for group in frozen if group.resources or group.has_traits]),
        group_policy=group_policy,
        same_subtree=same_subtree,
        root_required=root.required,
        root_forbidden=root.forbidden,
    )


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


def _add(drafts: dict[str, GroupDraft], group: RequestGroup, resources: Mapping[str, int]) -> None:
    draft = drafts.setdefault(group.suffix, GroupDraft())
    draft.resources.update(resources)
    draft.required |= group.required
    draft.forbidden |= group.forbidden
    draft.any_of |= group.any_of
    draft.requester_id = group.requester_id or draft.requester_id


def _check(flavor: Flavor, query: CandidateQuery) -> None:
    """Refuse a query that Placement would answer with 400."""
    if not query.groups:
        raise InvalidInput.of(
            f"flavor {flavor.name}", "requests no resources", "keep at least one resource"
        )
    faults = FaultList()
    root_both = query.root_required & query.root_forbidden
    faults.read(check_traits, f"flavor {flavor.name}", root_both)
    in_subtrees = query.in_subtrees
    for group in query.groups:
        faults.read(check_group, flavor.name, group, in_subtrees)
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
