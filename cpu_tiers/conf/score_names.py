"""The resource classes and traits that nova.conf names for the score, and that no host has."""

from collections.abc import Callable
from typing import Any

from cpu_tiers.conf.filter_scheduler import GROUP
from cpu_tiers.model.names import (
    STANDARD_CLASSES,
    as_known,
    is_resource_class,
    is_trait,
    similar,
    standard_traits,
)


def idle_names(
    options: Any,
    has_class: Callable[[str], bool] = is_resource_class,
    has_trait: Callable[[str], bool] = is_trait,
) -> list[str]:
    """Return a line for each configured resource class and trait that counts for no host.

    Of soft traits, only names that Placement cannot have: no host need have the others today.

    :param options: the values of this group.
    :param has_class, has_trait: tell whether a host may have the class or the trait. By default
        only a name that Placement cannot have counts for no host.
    """
    lines = []
    for option, has, can_be in (
        ("resource_provider_resources", has_class, is_resource_class),
        ("resource_provider_traits", has_trait, is_trait),
        ("resource_provider_avoided_traits", is_trait, is_trait),
        ("resource_provider_preferred_traits", is_trait, is_trait),
    ):
        for name in options[option]:
            if not name.endswith("*") and not has(as_known(name)):
                names = STANDARD_CLASSES if can_be is is_resource_class else standard_traits()
                meant = None if can_be(name) else similar(name, names)
                hint = f"; did you mean {meant}?" if meant else ""
                lines.append(f"[{GROUP}] {option}: {name} counts for no host{hint}")
    return lines
