"""CPU shares: from a flavor's shares to VCPU_SHARES units.

Spec: cpu-performance-service-levels, "CPU Share Management"; decision D2.
"""

from collections.abc import Iterable, Sequence

from cpu_tiers.extra_specs.shares import parse_shares
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.translators.contract import ServerRequest


def translate(server: ServerRequest) -> Iterable[RequestGroup]:
    """Return the VCPU_SHARES that a server claims, where the cloud asks for them.

    The extra specs are checked also where it does not ask: the guest gets its
    weight either way.

    :raises ConflictingExtraSpecs: both share specs are set.
    :raises InvalidInput: a value is no number, or its weight out of range.
    """
    if not server.query_vcpu_shares:
        parse_shares(server.flavor)
        return []
    claim = _claim(server)
    if not server.nodes:
        return [RequestGroup(resources={VCPU_SHARES: claim})] if claim else []
    parts = divide(claim, [server.shared_of(node) for node in server.nodes])
    return [
        RequestGroup(f"_PROC{number}", {VCPU_SHARES: part})
        for number, part in enumerate(parts, start=1)
        if part
    ]


def divide(amount: int, by: Sequence[int]) -> list[int]:
    """Divide an amount in proportion, in whole units that add up to it.

    Each part is rounded down, and what is left goes one by one to those that
    lost most, the first ones of equals.

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


def claimed_shares(server: ServerRequest) -> int:
    """Return the VCPU_SHARES that a server holds once the cloud asks for them.

    What the flavor states itself (``resources:CUSTOM_VCPU_SHARES``) wins, as
    in the query.

    :raises InvalidInput: flavor and image do not say which vCPUs are shared,
        or their shares are invalid.
    """
    stated = server.own_groups.amount(VCPU_SHARES)
    return _claim(server) if stated is None else stated


def _claim(server: ServerRequest) -> int:
    """Return what the share specs claim, whatever else the flavor states."""
    shares = parse_shares(server.flavor)
    return 0 if shares is None else shares.claim(server.cpus.shared)
