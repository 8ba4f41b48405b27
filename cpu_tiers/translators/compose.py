"""The groups of several translators, and the flavor's own, become one query."""

from collections.abc import Iterable, Mapping

from cpu_tiers.errors import ConflictingExtraSpecs, ExtensionError, FaultList, InvalidInput
from cpu_tiers.extra_specs.groups import GROUP_POLICY, OwnGroups
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.request import CandidateQuery, GroupDraft, RequestGroup


def compose(
    flavor: Flavor, own: OwnGroups, contributions: Mapping[str, Iterable[RequestGroup]]
) -> CandidateQuery:
    """Return the query of a flavor's own groups and what translators claim.

    :param contributions: groups by the name of their translator.
    :raises InvalidInput: the result is nothing that Placement can answer.
    """
    drafts = {"": GroupDraft()} | merge(own, contributions)
    for group in own.groups:
        _add(drafts, group, {c: n for c, n in group.resources.items() if n})
    query = CandidateQuery(groups=freeze(drafts), group_policy=own.group_policy)
    _check(flavor, query)
    return query


def merge(
    own: OwnGroups, contributions: Mapping[str, Iterable[RequestGroup]]
) -> dict[str, GroupDraft]:
    """Return what translators claim, by suffix, less the classes that a flavor states itself.

    :param contributions: groups by the name of their translator.
    :raises ExtensionError: two translators claim the same class.
    """
    stated = frozenset(name for group in own.groups for name in group.resources)
    drafts: dict[str, GroupDraft] = {}
    claimed_by: dict[tuple[str, str], str] = {}
    for name, groups in contributions.items():
        for group in groups:
            _refuse_doubles(name, group, claimed_by)
            _add(drafts, group, {c: n for c, n in group.resources.items() if c not in stated})
    return drafts


def freeze(drafts: Mapping[str, GroupDraft]) -> tuple[RequestGroup, ...]:
    """Return the finished groups, without those that ask for nothing."""
    frozen = (draft.freeze(suffix) for suffix, draft in drafts.items())
    return tuple(g for g in frozen if g.resources or g.required or g.forbidden)


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
    draft = drafts.setdefault(group.suffix, GroupDraft())
    draft.resources.update(resources)
    draft.required |= group.required
    draft.forbidden |= group.forbidden


def _check(flavor: Flavor, query: CandidateQuery) -> None:
    """Refuse what Placement would answer with 400."""
    if not query.groups:
        raise InvalidInput.of(f"flavor {flavor.name}", "asks for nothing", "leave one resource")
    faults = FaultList()
    for group in query.groups:
        with faults:
            check_group(flavor.name, group)
    suffixed = [group.suffix for group in query.groups if group.suffix]
    if len(suffixed) > 1 and query.group_policy is None:
        faults.add(
            flavor.spec(GROUP_POLICY),
            f"not set, with the groups {', '.join(suffixed)}",
            "set none, or isolate for a provider of its own to each",
        )
    faults.raise_if_any()


def check_group(flavor: str, group: RequestGroup) -> None:
    """Refuse a group that Placement would answer with 400.

    :param flavor: its name.
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
    if not group.resources:
        traits = ", ".join(sorted(group.required | group.forbidden))
        raise InvalidInput.of(where, f"traits ({traits}) but no resources", "add a resource")
    for name, amount in group.resources.items():
        if not 1 <= amount <= MAX_AMOUNT:
            raise InvalidInput.of(
                where, f"{amount} of {name}", f"Placement takes 1 to {MAX_AMOUNT}"
            )
