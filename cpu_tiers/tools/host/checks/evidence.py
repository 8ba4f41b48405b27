"""The evidence of an audit: the guests of a host as libvirt, the kernel and Placement see them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.guest.tier import flavor_shares, has_novas_old_default
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import CpuTime, Domain, GuestCgroup, HostCgroups, HostLoad
from cpu_tiers.model.providers import HostShares


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A host, its guests, and the measurements of one audit.

    :param host: the guests, with the weights that they must have.
    :param dedicated_cpus: the CPUs to which vCPUs are pinned one by one.
    :param cgroups: ``None`` if the cgroups could not be read.
    :param allocated: ``None`` if Placement was not queried.
    :param spent: the CPU time of each vCPU in the interval, by the uuid of the guest.
    :param load: what else took CPU time in the interval.
    :param seconds: the length of the interval; 0 if nothing was measured.
    :param untiered_weight: the weight that nova-compute gives a guest without a tier; ``None`` for
        no weight, and the default of the kernel.
    """

    host: Occupancy
    dedicated_cpus: CpuSet
    cgroups: HostCgroups | None = None
    allocated: HostShares | None = None
    spent: Mapping[str, tuple[CpuTime, ...]] = field(default_factory=dict)
    load: HostLoad = field(default_factory=HostLoad)
    seconds: float = 0.0
    untiered_weight: int | None = None

    def cgroup(self, domain: Domain) -> GuestCgroup | None:
        """Return the cgroup of a guest, or ``None`` if it was not found."""
        return self.cgroups.guests.get(domain.uuid or "") if self.cgroups else None

    def due_weight(self, domain: Domain) -> int | None:
        """Return the weight that a guest must have, or ``None`` for the default of the kernel."""
        return due_weight(domain, self.untiered_weight)

    def is_dedicated(self, cpus: CpuSet | None) -> bool:
        """Tell whether a vCPU with this CPU set is dedicated: pinned to a single dedicated CPU."""
        return cpus is not None and len(cpus) == 1 and cpus <= self.dedicated_cpus


def due_weight(domain: Domain, untiered_weight: int | None = None) -> int | None:
    """Return the weight that a guest must have, or ``None`` for the default of the kernel.

    The weight comes from the extra specs of the flavor if Nova has written them into the domain
    (release 32 and newer), otherwise from ``<shares>`` of the domain XML, unless these are the
    default of Nova 25 and older.
    """
    if domain.extra_specs is None:
        own = None if has_novas_old_default(domain) else domain.shares
        return own or untiered_weight
    shares = flavor_shares(domain)
    return untiered_weight if shares is None else shares.weight(len(domain.vcpu_sets))


def right_weights(domain: Domain, due: int | None) -> tuple[int | None, ...]:
    """Return the weights that are right for a guest: the due weight, and 1 for a flavor with 1.

    Nova itself writes 1 for ``quota:cpu_shares=1``, and libvirt 9.1 and newer start such a guest
    on cgroup v2 (decision D70).
    """
    shares = flavor_shares(domain)
    of_flavor = None if shares is None else shares.flavor_weight(len(domain.vcpu_sets))
    return (due, 1) if of_flavor == 1 else (due,)
