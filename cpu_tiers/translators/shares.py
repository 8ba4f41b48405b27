"""CPU shares: from the shares of a flavor to amounts of VCPU_SHARES.

Spec: cpu-performance-service-levels, "CPU Share Management"; decision D2.
"""

from collections.abc import Iterable, Sequence

from cpu_tiers.extra_specs.groups import states_shares
from cpu_tiers.extra_specs.shares import Shares, effective_shares, parse_shares
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest


def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the request for the VCPU_SHARES of a server, if the cloud requests VCPU_SHARES.

    The extra specs are checked even if the cloud does not request VCPU_SHARES, because
    the guest gets its weight from them in any case.

    A server that exists requests none if its extra specs for shares have a fault (decision D72).

    :raises ConflictingExtraSpecs: both extra specs for shares are set.
    :raises InvalidInput: a value is not a number, or its weight is out of range; or the flavor
        states an amount of shares (``resources:…``) that Nova overlooks.
    """
    if not server.query_vcpu_shares:
        _shares(server)
        return []
    if states_shares(server.flavor):
        _ = server.own_groups  # has the faults
    amount = _shares_of_specs(server)
    if not server.nodes:
        return [RequestGroup(resources={VCPU_SHARES: amount})] if amount else []
    parts = divide(amount, [server.shared_of(node) for node in server.nodes])
    return [
        RequestGroup(f"_PROC{number}", {VCPU_SHARES: part})
        for number, part in enumerate(parts, start=1)
        if part
    ]


def divide(amount: int, by: Sequence[int]) -> list[int]:
    """Divide an amount in proportion into whole numbers that add up to the amount.

    Each part is rounded down. The remaining units go to the parts that lost most by
    rounding, a unit to each; of equal parts, the first parts get the units.

    :param by: the proportions, at least one of them above 0 unless the amount is 0.

    Example: 100 by 1, 1 and 1 is 34, 33 and 33.
    """
    if not amount:
        return [0] * len(by)
    whole = sum(by)
    parts = [amount * part // whole for part in by]
    losers = sorted(range(len(by)), key=lambda i: -(amount * by[i] % whole))
    for i in losers[: amount - sum(parts)]:
        parts[i] += 1
    return parts


def requested_shares(server: ServerRequest) -> int:
    """Return the VCPU_SHARES that a server holds once the cloud requests VCPU_SHARES.

    As in the query, an amount that the flavor states itself
    (``resources:CUSTOM_VCPU_SHARES``) overrides the extra specs for shares.

    :raises InvalidInput: flavor and image contradict each other about the shared vCPUs,
        or the shares are invalid.
    """
    stated = server.own_groups.amount(VCPU_SHARES)
    return _shares_of_specs(server) if stated is None else stated


def _shares_of_specs(server: ServerRequest) -> int:
    """Return the amount of the extra specs for shares, without regard to ``resources:…``."""
    shares = _shares(server)
    return 0 if shares is None else shares.requested(server.cpus.shared)


def _shares(server: ServerRequest) -> Shares | None:
    return (
        parse_shares(server.flavor) if server.existing is None else effective_shares(server.flavor)
    )
