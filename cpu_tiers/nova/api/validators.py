"""Validators for the extra specs of cpu-tiers in nova-api.

Nova loads this module through the entry point ``nova.api.extra_spec_validators``
and calls :func:`register` when nova-api starts, for all microversions. From
microversion 2.86 on, nova-api calls the validator of each extra spec separately.
A validator therefore cannot find two extra specs that contradict each other: boot
and resize find the contradiction (:mod:`cpu_tiers.nova.api.flavor_admission`), or else
scheduling (:mod:`cpu_tiers.nova.scheduler.resource_request`).
"""

from nova import exception
from nova.api.validation.extra_specs import base, traits

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.cpu_policies import (
    EMULATOR_POLICIES,
    EMULATOR_RELEASED_KEY,
    EMULATOR_SPEC_KEY,
)
from cpu_tiers.extra_specs.shares import MAX_WEIGHT, MULTIPLIER, parse_multiplier
from cpu_tiers.extra_specs.soft_traits import AVOIDED, PREFERRED, check_soft_trait, is_soft
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


class TraitValidator(base.ExtraSpecValidator):
    """Validator for a trait that is required, forbidden, preferred or avoided."""

    def validate(self, name: str, value: str) -> None:
        """Check the value.

        :raises nova.exception.ValidationError: the value is malformed.
        """
        if not is_soft(value):
            super().validate(name, value)
            return
        faults = FaultList()
        suffix, _, _ = name.removeprefix("trait").partition(":")
        check_soft_trait(f"extra spec {name}", suffix, value, faults)
        if faults.faults:
            raise exception.ValidationError(f"Validation failed; {InvalidInput(faults.faults)}")


def _trait_validators() -> list[base.ExtraSpecValidator]:
    """Return validators that Nova calls in place of its own validators of traits.

    Of two validators that fit, Nova calls the validator of the distribution that it has loaded
    first, and of two with the same name, the validator that it has loaded last. The order of
    distributions is not defined. So one validator has a name of its own, for a Nova that is loaded
    after cpu-tiers, and the others have the names of Nova's validators, for a Nova before it.
    """
    names = "|".join(each.name.partition(":")[2] for each in traits.EXTRA_SPEC_VALIDATORS)
    kinds = {"type": str, "enum": ["required", "forbidden", PREFERRED, AVOIDED]}
    group = {"name": "group", "pattern": "([a-zA-Z0-9_-]{1,64})?"}
    name = {"name": "name", "pattern": names.replace("{trait}", "[A-Z0-9_]+")}
    return [
        TraitValidator(
            name="trait{group}:{name}",
            description="Require, forbid, prefer or avoid a trait.",
            value=kinds,
            parameters=[group, name],
        ),
        *(
            TraitValidator(
                name=novas.name,
                description=novas.description,
                value=kinds,
                parameters=novas.parameters,
            )
            for novas in traits.EXTRA_SPEC_VALIDATORS
        ),
    ]


def register() -> list[base.ExtraSpecValidator]:
    """Turn on the features of nova-api and return the validators of cpu-tiers.

    nova-api knows the extra specs of cpu-tiers whether a feature is on or not.
    Nova's ``validators.load_validators`` calls this function. It only logs a failed
    import of this module, but lets an exception of this function stop nova-api.

    :raises SeamMismatch: cpu-tiers does not fit the installed Nova.
    """
    features.start()
    return [
        *_trait_validators(),
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
