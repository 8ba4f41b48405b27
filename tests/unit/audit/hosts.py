"""Hosts to audit: four CPUs, 0 and 1 shared, 2 and 3 dedicated."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.tiers.domain import (
    DEFAULT_WEIGHT,
    CpuTime,
    Domain,
    GuestCgroup,
    HostCgroups,
    HostLoad,
    Version,
)
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import HostShares

SHARED, DEDICATED = CpuSet({0, 1}), CpuSet({2, 3})


def guest(
    name: str, shares: int | None, *sets: CpuSet | None, multiplier: str | None = None
) -> Domain:
    """A guest that floats unless sets are given; a multiplier makes it one of Nova 32 or newer."""
    specs = None if multiplier is None else {"quota:cpu_shares_multiplier": multiplier}
    return Domain(
        name=name,
        uuid=f"{name}-uuid",
        shares=shares,
        vcpu_sets=sets or (SHARED,),
        extra_specs=specs,
    )


def cgroups(
    version: Version = 2,
    above: Mapping[str, int] | None = None,
    policies: Mapping[str, int] | None = None,
    sched_ext: str | None = None,
    parts: Mapping[str, Any] | None = None,
    of_guests: Mapping[str, Any] | None = None,
    **weights: int | None,
) -> HostCgroups:
    """Cgroups of guests with these weights, laid out as systemd does.

    :param parts: further attributes of the host.
    :param of_guests: further attributes of each guest.
    """
    return HostCgroups(
        version=version,
        guests={
            f"{name}-uuid": GuestCgroup(
                path=f"/machine.slice/{name}.scope",
                weight=weight,
                policies=policies or {},
                **(of_guests or {}),
            )
            for name, weight in weights.items()
        },
        above=above or dict.fromkeys(("/machine.slice", "/system.slice"), DEFAULT_WEIGHT[version]),
        sched_ext=sched_ext,
        **(parts or {}),
    )


def evidence(
    *domains: Domain,
    found: HostCgroups | None = None,
    allocated: HostShares | None = None,
    spent: Mapping[str, tuple[CpuTime, ...]] | None = None,
    dedicated: CpuSet = DEDICATED,
    load: HostLoad | None = None,
    untiered: int | None = None,
    shares: int = 0,
    throttled: Mapping[str, float] | None = None,
) -> Evidence:
    """Return the evidence of these guests.

    :param shares: how many shares the two shared CPUs are sold for; 0 sells nothing.
    """
    inventories = {
        "VCPU": Inventory(total=2, max_unit=2),
        VCPU_SHARES: Inventory(total=shares, max_unit=shares),
    }
    default = DEFAULT_WEIGHT[found.version if found else 2]
    host = Occupancy(
        domains=tuple(
            replace(one, weight=due_weight(one, untiered) or default) for one in domains
        ),
        cpus=CpuSet(range(4)),
        shared_cpus=SHARED,
        default_weight=default,
        services={},
        inventories=inventories if shares else {},
    )
    return Evidence(
        host=host,
        dedicated_cpus=dedicated,
        cgroups=found,
        allocated=allocated,
        spent={f"{name}-uuid": times for name, times in (spent or {}).items()},
        load=load or HostLoad(),
        throttled={f"{name}-uuid": s for name, s in (throttled or {}).items()},
        seconds=10.0 if spent else 0.0,
        untiered_weight=untiered,
    )


def summary(of: Evidence) -> list[tuple[str, str, str]]:
    """Kind, place and finding of all that is found."""
    return [(one.kind.value, one.where, one.found) for one in audit(of)]


def only(of: Evidence) -> Finding:
    """The one thing that is found."""
    (finding,) = audit(of)
    return finding
