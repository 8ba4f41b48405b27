"""CPU shares: from a flavor's shares to VCPU_SHARES units.

Spec: cpu-performance-service-levels, "CPU Share Management"; decision D2.
"""

from collections.abc import Iterable

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
    shares = parse_shares(server.flavor)
    if shares is None or not server.query_vcpu_shares:
        return []
    claim = shares.claim(server.cpus.shared)
    return [RequestGroup(resources={VCPU_SHARES: claim})] if claim else []
