"""The limits of an inventory: the reason why a server cannot have an amount of it. Pure."""

from cpu_tiers.model.inventory import Inventory


def limit_of(name: str, amount: int, inventory: Inventory | None, left: int) -> str:
    """Return why a server cannot have an amount of an inventory; empty if it can.

    Placement checks the same four values when allocations are written.

    :param name: what the amount is of, for the text: the resource class.
    :param inventory: ``None`` if the provider has no such inventory.
    :param left: the capacity that no consumer holds; negative if an operator
        has made the inventory smaller than what is held.
    """
    if inventory is None:
        return f"{amount} {name}: there is no inventory of it"
    unit = inventory.units.refusing(amount)
    if unit == "max_unit":
        return f"{amount} {name}: one server may have at most {inventory.max_unit} (max_unit)"
    if amount > left:
        return f"{amount} {name}: only {max(left, 0)} of {inventory.capacity} are left"
    if unit == "min_unit":
        return f"{amount} {name}: less than min_unit {inventory.min_unit}"
    if unit == "step_size":
        return f"{amount} {name}: not a multiple of step_size {inventory.step_size}"
    return ""
