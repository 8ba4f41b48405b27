"""The groups of several translators, and the flavor's own, become one query."""

from collections.abc import Container, Iterable, Mapping

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, FaultList, InvalidInput
from cpu_tiers.extra_specs.groups import GROUP_POLICY, OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.request import CandidateQuery, GroupDraft, RequestGroup, SameSubtree


def compose(
    flavor: Flavor,
    own: OwnGroups,
    contributions: Mapping[str, Iterable[RequestGroup | SameSubtree]],
    *,
    traits_on_root: bool = False,
) -> CandidateQuery:
    """Return the query of a flavor's own groups and what translators claim.

    :param contributions: groups, and which stand in one subtree, by the name of
        their translator.
    :param traits_on_root: the unsuffixed group's traits are those of the root,
        though what it offers may be claimed elsewhere.
    :raises InvalidInput: the result is nothing that Placement can answer.
    """
    drafts = {"": GroupDraft()} | merge(own, contributions)
    for group in own.groups:
        _add(drafts, group, {c: n for c, n in group.resources.items() if n})
    root = (drafts[""].take_traits() if traits_on_root else GroupDraft()).freeze("")
    query = CandidateQuery(
        groups=freeze(drafts),
        group_policy=own.group_policy,
        same_subtree=subtrees(contributions),
        root_required=root.required,
        root_forbidden=root.forbidden,
    )
    _check(flavor, query)
    return query


def merge(
    own: OwnGroups, contributions: Mapping[str, Iterable[RequestGroup | SameSubtree]]
) -> dict[str, GroupDraft]:
    """Return what translators claim, by suffix, less the classes that a flavor states itself.

    :param contributions: groups, and which stand in one subtree, by the name of
        their translator.
    :raises ExtensionError: two translators claim the same class.
    """
    stated = frozenset(name for group in own.groups for name in group.resources)
    drafts: dict[str, GroupDraft] = {}
    claimed_by: dict[tuple[str, str], str] = {}
    for name, parts in contributions.items():
        for part in parts:
            if isinstance(part, SameSubtree):
                continue
            _refuse_doubles(name, part, claimed_by)
            replaced = stated if part.requester_id is None else ()
            _add(drafts, part, {c: n for c, n in part.resources.items() if c not in replaced})
    return drafts


def subtrees(
    contributions: Mapping[str, Iterable[RequestGroup | SameSubtree]],
) -> tuple[tuple[str, ...], ...]:
    """Return the suffixes of the groups that stand in one subtree."""
    return tuple(
        part.suffixes
        for parts in contributions.values()
        for part in parts
        if isinstance(part, SameSubtree)
    )


def freeze(drafts: Mapping[str, GroupDraft]) -> tuple[RequestGroup, ...]:
    """Return the finished groups, without those that ask for nothing."""
    frozen = (draft.freeze(suffix) for suffix, draft in drafts.items())
    return tuple(g for g in frozen if g.resources or g.has_traits)


def _refuse_doubles(
    name: str, group: RequestGroup, claimed_by: dict[tuple[str, str], str]
) -> None:
    for resource_class in group.resources:
        other = claimed_by.setdefault((group.suffix, resource_class), name)
        if other != name:
            raise ExtensionError(
                f"the translators {other!r} and {name!r} both claim {resource_class} "
                f"in group {group.suffix!r}; uninstall one"
            )


def _add(drafts: dict[str, GroupDraft], group: RequestGroup, resources: Mapping[str, int]) -> None:
    if group.suffix not in drafts:
        drafts[group.suffix] = GroupDraft()
    draft = drafts[group.suffix]
    draft.resources.update(resources)
    draft.required |= group.required
    draft.forbidden |= group.forbidden
    draft.any_of |= group.any_of
    draft.requester_id = group.requester_id or draft.requester_id


def _check(flavor: Flavor, query: CandidateQuery) -> None:
    """Refuse what Placement would answer with 400."""
    if not query.groups:
        raise InvalidInput.of(f"flavor {flavor.name}", "asks for nothing", "leave one resource")
    faults = FaultList()
    in_subtrees = frozenset(suffix for suffixes in query.same_subtree for suffix in suffixes)
    for group in query.groups:
        with faults:
            check_group(flavor.name, group, in_subtrees)
    suffixed = [group.suffix for group in query.groups if group.suffix]
    for suffix in sorted(in_subtrees.difference(suffixed)):
        faults.add(f"flavor {flavor.name}, same_subtree", f"no group {suffix!r}", "name groups")
    if len(suffixed) > 1 and query.group_policy is None:
        faults.add(
            flavor.spec(GROUP_POLICY),
            f"not set, with {len(suffixed)} groups: {', '.join(suffixed)}",
            "set none, or isolate for a provider of its own to each",
        )
    faults.raise_if_any()


def check_group(flavor: str, group: RequestGroup, in_subtrees: Container[str] = ()) -> None:
    """Refuse a group that Placement would answer with 400.

    :param flavor: its name.
    :param in_subtrees: the suffixes of groups that need no resources.
    :raises InvalidInput: no resources, an amount out of range, or a trait that
        is required and forbidden.
    """
    where = f"flavor {flavor}, group {group.suffix!r}" if group.suffix else f"flavor {flavor}"
    both = sorted(group.required & group.forbidden)
    if both:
        raise ConflictingExtraSpecs.of(
            where,
            f"{', '.join(both)} required and forbidden",
            "flavor and image must agree on a trait",
        )
    if not group.resources and group.suffix not in in_subtrees:
        traits = ", ".join(sorted(group.required.union(group.forbidden, *group.any_of)))
        raise InvalidInput.of(where, f"traits ({traits}) but no resources", "add a resource")
    for name, amount in group.resources.items():
        if not 1 <= amount <= MAX_AMOUNT:
            raise InvalidInput.of(
                where, f"{amount} of {name}", f"Placement takes 1 to {MAX_AMOUNT}"
            )
