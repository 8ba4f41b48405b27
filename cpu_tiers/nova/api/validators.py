"""Validators for the extra specs of cpu-tiers in nova-api.

Nova loads this module through the entry point ``nova.api.extra_spec_validators``
and calls :func:`register` when nova-api starts, for all microversions. From
microversion 2.86 on, nova-api calls the validator of each extra spec separately.
A validator therefore cannot find two extra specs that contradict each other: boot
and resize find the contradiction (:mod:`cpu_tiers.nova.api.flavor_admission`), or else
scheduling (:mod:`cpu_tiers.nova.scheduler.resource_request`).
"""

from nova import exception
from nova.api.validation.extra_specs import base

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.cpu_policies import (
    EMULATOR_POLICIES,
    EMULATOR_RELEASED_KEY,
    EMULATOR_SPEC_KEY,
)
from cpu_tiers.extra_specs.shares import MAX_WEIGHT, MULTIPLIER, parse_multiplier
from cpu_tiers.nova.api import features


class MultiplierValidator(base.ExtraSpecValidator):
    """Validator for an extra spec with a decimal number as its value."""

    # Nova's ExtraSpecValidator knows int, str and bool only and refuses a validator of type
    # float when the validator is created, so the number is checked as text.
    def _validate_str(self, value: str) -> None:
        try:
            parse_multiplier(value, f"extra spec {self.name}")
        except InvalidInput as error:
            raise exception.ValidationError(f"Validation failed; {error}") from error


def register() -> list[base.ExtraSpecValidator]:
    """Turn on the features of nova-api and return the validators of cpu-tiers.

    nova-api knows the extra specs of cpu-tiers whether a feature is on or not.
    Nova's ``validators.load_validators`` calls this function. It only logs a failed
    import of this module, but lets an exception of this function stop nova-api.

    :raises SeamMismatch: cpu-tiers does not fit the installed Nova.
    """
    features.start()
    return [
        MultiplierValidator(
            name=MULTIPLIER,
            description=(
                "The CPU shares of each vCPU: a decimal number above 0 and up to "
                f"{MAX_WEIGHT}. The weight of the whole server is this number times its vCPUs. "
                "quota:cpu_shares sets the weight of the whole server directly: "
                "set only one of the two extra specs."
            ),
            value={"type": str, "description": "A decimal number, such as 100 or 2.5."},
        ),
        base.ExtraSpecValidator(
            name=EMULATOR_SPEC_KEY,
            description=f"Another name for {EMULATOR_RELEASED_KEY}: set one name, or both to equal"
            " values.",
            value={
                "type": str,
                "description": "Where the emulator threads of the hypervisor run.",
                "enum": list(EMULATOR_POLICIES),
            },
        ),
    ]
