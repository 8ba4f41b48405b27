"""Clouds, queries and answers in few words, for the tests of the simulation."""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider

SHARES = "MISC_SHARES_VIA_AGGREGATE"


def provider(
    name: str, parent: str | None = None, *traits: str, aggregate: str = "", **totals: int
) -> CloudProvider:
    """Return a provider without use, whose uuid is its name."""
    return CloudProvider(
        uuid=name,
        name=name,
        parent=parent,
        inventories={n: Inventory(total=total, max_unit=total) for n, total in totals.items()},
        traits=frozenset(traits),
        aggregates=frozenset([aggregate] if aggregate else []),
    )


def group(suffix: str = "", *required: str, **resources: int) -> RequestGroup:
    """Return a request group."""
    return RequestGroup(suffix=suffix, resources=resources, required=frozenset(required))


def query(*groups: RequestGroup, policy: str = "none", **more: Any) -> CandidateQuery:
    """Return a query with a group policy."""
    return CandidateQuery(groups=groups, group_policy=policy, **more)


def providers_of(answer: CandidatesAnswer) -> list[Mapping[str, str]]:
    """Return the providers of each request group, candidate by candidate, in order."""
    found = [
        {suffix: "+".join(uuids) for suffix, uuids in request.mappings.items()}
        for request in answer.allocation_requests
    ]
    return sorted(found, key=str)


CARDS = (
    provider("host", None, VCPU=8),
    provider("host-c1", "host", CARD=3),
    provider("host-c2", "host", "FAST", CARD=2),
    provider("plain", None, VCPU=8),
    provider("pool", None, SHARES, aggregate="a", DISK=10),
    provider("disks", None, aggregate="a", VCPU=1),
)
"""A host with two cards, a plain host, and a host without disks that uses a pool of disks."""
