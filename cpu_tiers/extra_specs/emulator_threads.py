"""Whether emulator threads get a dedicated CPU of their own.

Spec: libvirt-emulator-threads-policy; decision D5: the spec's key and the one
that Nova released are both read. Pure.
"""

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList
from cpu_tiers.model.flavor import Flavor

KEYS = ("hw:emulator_threads_policy", "hw:cpu_emulator_threads")
_VALUES = ("share", "isolate")


def isolates_emulator_threads(flavor: Flavor) -> bool:
    """Tell whether the policy is ``isolate``.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: the two keys differ.
    """
    given = {key: flavor.extra_specs[key] for key in KEYS if key in flavor.extra_specs}
    faults = FaultList()
    for key, value in given.items():
        if value not in _VALUES:
            faults.add(flavor.spec(key), f"got {value!r}", f"give one of {', '.join(_VALUES)}")
    faults.raise_if_any()
    if len(set(given.values())) > 1:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, extra specs {' and '.join(KEYS)}",
            " and ".join(map(repr, given.values())),
            "they say the same thing under two names: remove one",
        )
    return "isolate" in given.values()
