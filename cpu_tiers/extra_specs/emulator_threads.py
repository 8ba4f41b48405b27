"""The emulator threads policy: where the hypervisor's own threads of a guest run.

Both the key of the spec and the key that Nova released are read. Spec:
libvirt-emulator-threads-policy; decision D5. Pure.
"""

from __future__ import annotations

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList
from cpu_tiers.extra_specs.choices import flavor_choice
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.policies import EmulatorThreadsPolicy

RELEASED_KEY = "hw:emulator_threads_policy"
SPEC_KEY = "hw:cpu_emulator_threads"
KEYS = (RELEASED_KEY, SPEC_KEY)
POLICIES: tuple[EmulatorThreadsPolicy, ...] = ("share", "isolate")


def emulator_threads_policy(flavor: Flavor) -> EmulatorThreadsPolicy | None:
    """Return the policy, or ``None`` if neither key is set.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: the two keys have different values.
    """
    faults = FaultList()
    released = faults.read(_policy, flavor, RELEASED_KEY)
    spec = faults.read(_policy, flavor, SPEC_KEY)
    faults.raise_if_any()
    # Both keys with equal values are accepted: they do not contradict each other.
    if released and spec and released != spec:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, extra specs {' and '.join(KEYS)}",
            f"{released!r} and {spec!r}",
            "both keys set the same policy: remove one of them",
        )
    return released or spec


def _policy(flavor: Flavor, key: str) -> EmulatorThreadsPolicy | None:
    return flavor_choice(flavor, key, POLICIES)
