"""The amounts that nova.conf reserves for a host, divided among its NUMA nodes."""

from collections.abc import Sequence


def divide_reserved(amount: int, totals: Sequence[int]) -> tuple[int, ...]:
    """Divide a reserved amount evenly among providers, no more than each of them has.

    The first providers get the units that cannot be divided evenly. If the
    amount is larger than all totals together, the first provider gets the
    excess, so that :class:`~cpu_tiers.model.inventory.ResourceProvider` refuses
    its inventory.

    :param totals: how much each provider has.

    Example: 3 among 8 and 8 is 2 and 1; 6 among 1 and 8 is 1 and 5.
    """
    parts = [0] * len(totals)
    while amount and (not_full := [i for i, total in enumerate(totals) if parts[i] < total]):
        each = max(1, amount // len(not_full))
        for i in not_full:
            part = min(each, totals[i] - parts[i], amount)
            parts[i] += part
            amount -= part
    return tuple(part + (amount if i == 0 else 0) for i, part in enumerate(parts))
