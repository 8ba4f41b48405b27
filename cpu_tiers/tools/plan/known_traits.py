"""Whether Placement knows the traits that flavors and images name. Pure.

Placement answers 400 to a query that requires or forbids an unknown trait, and Nova takes the
answer for no candidates: ``SchedulerReportClient.get_allocation_candidates`` of Nova 31 to 34.
nova-scheduler with cpu-tiers creates the traits of cpu-tiers, and not those of a flavor.
"""

from __future__ import annotations

from collections.abc import Iterator

from cpu_tiers.model.flavor import Flavor, Image, properties
from cpu_tiers.model.names import is_custom
from cpu_tiers.tools.cloud_model.snapshot import Snapshot

_IN_QUERIES = ("required", "forbidden")


class KnownTraits:
    """The custom traits that Placement knows.

    :param snapshot: if it does not say which traits Placement knows beside those of providers,
        each trait counts as known.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._is_read = snapshot.traits is not None
        of_providers = {provider.traits for provider in snapshot.providers}
        self._names = frozenset(snapshot.traits or ()).union(*of_providers)

    def refusal(self, flavor: Flavor, image: Image | None) -> str:
        """Return why Nova finds no host for a flavor and an image, and the remedy.

        :returns: empty if Placement knows all their traits.
        """
        absent = sorted(set(self._absent(flavor, image))) if self._is_read else []
        return (
            f"Placement does not know {', '.join(absent)}, and so Nova finds no host: openstack"
            f" trait create {absent[0]}"
            if absent
            else ""
        )

    def unread(self, flavor: Flavor) -> set[str]:
        """Return the traits that a flavor forbids, and that Placement may not know."""
        specs = flavor.extra_specs
        forbids = (key for key in specs if specs[key] == "forbidden")
        named = {key.partition(":")[2] for key in forbids}
        return set() if self._is_read else named.intersection(self._absent(flavor, None))

    def _absent(self, flavor: Flavor, image: Image | None) -> Iterator[str]:
        """Yield the custom traits that flavor or image name and no provider has."""
        for key, value in (*flavor.extra_specs.items(), *properties(image).items()):
            name = key.partition(":")[2]
            is_asked = key.startswith("trait") and value in _IN_QUERIES
            if is_asked and is_custom(name) and name not in self._names:
                yield name
