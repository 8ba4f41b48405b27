"""nova-api: which values of our extra specs are valid, and the seams it needs.

Nova loads this module by the entry point ``nova.api.extra_spec_validators``
and calls :func:`register` when the API starts, whatever microversions are asked
for later. From 2.86 on it then asks the validators, key by key: that two specs
contradict each other shows at boot (:mod:`cpu_tiers.nova.cpu_policies`) or at scheduling
(:mod:`cpu_tiers.nova.scheduler.resource_request`).
"""

from nova import exception
from nova.api.validation.extra_specs import base

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.emulator_threads import POLICIES, RELEASED_KEY, SPEC_KEY
from cpu_tiers.extra_specs.shares import MAX_WEIGHT, MULTIPLIER, parse_multiplier
from cpu_tiers.nova import cpu_policies, seams


class MultiplierValidator(base.ExtraSpecValidator):
    """Checks a decimal number, a kind of value that Nova itself does not know."""

    def _validate_str(self, value: str) -> None:
        try:
            parse_multiplier(value, f"extra spec {self.name}")
        except InvalidInput as error:
            raise exception.ValidationError(f"Validation failed; {error}") from error


def register() -> list[base.ExtraSpecValidator]:
    """Install the seams of nova-api; return our validators, as Nova asks for them.

    :raises SeamMismatch: we do not fit this Nova; the API does not start then.
    """
    seams.install((*cpu_policies.SEAMS, cpu_policies.MATRIX))
    return [
        MultiplierValidator(
            name=MULTIPLIER,
            description=(
                "The CPU shares of each vCPU: a decimal number above 0 and up to "
                f"{MAX_WEIGHT}. The weight of the whole server is this number times its vCPUs. "
                "Says the same as quota:cpu_shares in another way: set one of the two."
            ),
            value={"type": str, "description": "A decimal number, such as 100 or 2.5."},
        ),
        base.ExtraSpecValidator(
            name=SPEC_KEY,
            description=f"Another name for {RELEASED_KEY}: set one of the two, or both alike.",
            value={
                "type": str,
                "description": "Where the threads of the hypervisor run.",
                "enum": list(POLICIES),
            },
        ),
    ]
