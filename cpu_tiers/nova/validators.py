"""nova-api: which values of our extra specs are valid.

Nova loads this module by the entry point ``nova.api.extra_spec_validators``
and asks it from microversion 2.86 on, key by key: that two specs contradict
each other shows at scheduling, see ``cpu_tiers.nova.request``.
"""

from nova import exception
from nova.api.validation.extra_specs import base

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import MAX_WEIGHT, MULTIPLIER, parse_multiplier


class MultiplierValidator(base.ExtraSpecValidator):
    """Checks a decimal number, a kind of value that Nova itself does not know."""

    def _validate_str(self, value: str) -> None:
        try:
            parse_multiplier(value, f"extra spec {self.name}")
        except InvalidInput as error:
            raise exception.ValidationError(f"Validation failed; {error}") from error


def register() -> list[base.ExtraSpecValidator]:
    """Return our validators, as Nova asks for them."""
    return [
        MultiplierValidator(
            name=MULTIPLIER,
            description=(
                "The CPU shares of each vCPU: a decimal number above 0 and up to "
                f"{MAX_WEIGHT}. The weight of the whole server is this number times its vCPUs. "
                "Says the same as quota:cpu_shares in another way: set one of the two."
            ),
            value={"type": str, "description": "A decimal number, such as 100 or 2.5."},
        )
    ]
