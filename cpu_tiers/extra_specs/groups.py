"""The request groups that a flavor states in its own extra specs.

Nova's flavors guide describes ``resources[N]:CLASS=AMOUNT``,
``trait[N]:TRAIT=required|forbidden`` and ``group_policy=none|isolate``. ``N`` is a
suffix as of Placement microversion 1.33. Soft traits are checked, and are in no group. Pure.
"""

import functools
import re
from typing import NamedTuple

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.soft_traits import check_soft_trait, is_soft
from cpu_tiers.model import names
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import GroupDraft, RequestGroup
from cpu_tiers.model.similar_names import advice

GROUP_POLICY = "group_policy"

_KEY = r"(resources|trait)([A-Za-z0-9_-]{0,64}):(.+)"
_CLASSES = "use one of os-resource-classes, or CUSTOM_ and capitals, digits and _"
_TRAITS = "use one of os-traits, or CUSTOM_ and capitals, digits and _"
# Placement's largest amount, 2147483647, has 10 digits.
_MOST_DIGITS = 10


class OwnGroups(NamedTuple):
    """The groups of a flavor. An amount of 0 says: nothing of the class is requested."""

    groups: tuple[RequestGroup, ...] = ()
    group_policy: str | None = None

    def amount(self, resource_class: str) -> int | None:
        """Return the sum over all groups, or ``None`` if no group has the resource class."""
        stated = [
            group.resources[resource_class]
            for group in self.groups
            if resource_class in group.resources
        ]
        return sum(stated) if stated else None


def read_groups(flavor: Flavor, faults: FaultList) -> OwnGroups:
    """Return the groups without the extra specs that have faults, and collect the faults.

    Faults are a malformed key, an amount that is no whole number, a class or a trait whose name
    Placement cannot have, and an unknown group policy.
    """
    drafts: dict[str, GroupDraft] = {}
    for key, value in flavor.extra_specs.items():
        if key.startswith(("resources", "trait")):
            _parse_spec(flavor.spec(key), key, value, drafts, faults)
    policy = flavor.extra_specs.get(GROUP_POLICY)
    if policy not in (None, "none", "isolate"):
        faults.add(flavor.spec(GROUP_POLICY), f"got {policy!r}", "give none or isolate")
        policy = None
    return OwnGroups(
        groups=tuple(draft.freeze(suffix) for suffix, draft in drafts.items()), group_policy=policy
    )


def states_shares(flavor: Flavor) -> bool:
    """Tell whether an extra spec states an amount of shares, by either name, faulty or not."""
    keys = (key for key in flavor.extra_specs if key.startswith("resources"))
    return any(names.as_known(key.partition(":")[2]) == names.VCPU_SHARES for key in keys)


def _parse_spec(
    where: str, key: str, value: str, drafts: dict[str, GroupDraft], faults: FaultList
) -> None:
    parts = _parts(key)
    if parts is None:
        # Other keys may begin with these words: without a colon Nova ignores them.
        if ":" in key or key in ("resources", "trait"):
            faults.add(where, "malformed key", "write resources[N]:CLASS or trait[N]:TRAIT")
        return
    kind, suffix, name = parts
    if kind == "trait" and is_soft(value):
        check_trait(where, name, faults)
        check_soft_trait(where, suffix, value, faults)
        return
    if suffix not in drafts:
        drafts[suffix] = GroupDraft()
    add = _add_resource if kind == "resources" else _add_trait
    add(where, name, value, drafts[suffix], faults)


@functools.lru_cache(maxsize=1024)
def _parts(key: str) -> tuple[str, str, str] | None:
    """Return kind, suffix and name of a key. The flavors of a cloud have many keys in common."""
    match = re.fullmatch(_KEY, key)
    return match and (match[1], match[2], match[3])


def _add_resource(where: str, name: str, value: str, draft: GroupDraft, faults: FaultList) -> None:
    amount, known = _amount(value), names.as_known(name)
    is_known = known == name and names.is_resource_class(name)
    if not is_known:
        faults.add(
            where,
            f"unknown resource class {name!r}",
            f"its name in Placement is {known}"
            if known != name
            else advice(name, names.STANDARD_CLASSES, _CLASSES),
        )
    if amount is None:
        faults.add(where, f"got {value!r}", f"give a whole number from 0 to {names.MAX_AMOUNT}")
    elif is_known:
        draft.resources[name] = amount


def _amount(text: str) -> int | None:
    """Return an amount that Placement accepts; ``None`` for other texts."""
    # Not int() alone, which also reads signs, spaces, "_" and the digits of other scripts.
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and int(text) <= names.MAX_AMOUNT else None


def _add_trait(where: str, name: str, value: str, draft: GroupDraft, faults: FaultList) -> None:
    check_trait(where, name, faults)
    if value == "required":
        draft.required.add(name)
    elif value == "forbidden":
        draft.forbidden.add(name)
    else:
        faults.add(where, f"got {value!r}", "give required, forbidden, preferred or avoided")


def check_trait(where: str, name: str, faults: FaultList) -> None:
    """Add a fault if Placement cannot have a trait of this name."""
    if not names.is_trait(name):
        hint = advice(name, names.standard_traits(), _TRAITS)
        faults.add(where, f"unknown trait {name!r}", hint)
