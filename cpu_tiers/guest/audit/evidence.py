"""What an audit looks at: a host as its parts were found."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.guest.tier import flavor_shares
from cpu_tiers.model.cgroup import HostCgroups
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.cpu_time import CpuTime
from cpu_tiers.model.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """The VCPU_SHARES of a host in Placement.

    :param capacity: ``None`` where the host reports none.
    :param shares: by the uuid of the consumer, all that hold anything of the host.
    """

    capacity: int | None
    shares: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A host and its guests.

    :param host: the guests, with the weights that they must have.
    :param dedicated_cpus: those that vCPUs are pinned to alone.
    :param cgroups: ``None`` where they could not be read.
    :param allocated: ``None`` where Placement was not asked.
    :param spent: by uuid, the CPU time of each vCPU in the interval.
    :param seconds: of the interval; 0 where nothing was measured.
    """

    host: Occupancy
    dedicated_cpus: CpuSet
    cgroups: HostCgroups | None = None
    allocated: Allocated | None = None
    spent: Mapping[str, tuple[CpuTime, ...]] = field(default_factory=dict)
    seconds: float = 0.0

    def is_dedicated(self, cpus: CpuSet | None) -> bool:
        """Tell whether a vCPU with this CPU set was given a CPU alone: it is pinned to one."""
        return cpus is not None and len(cpus) == 1 and cpus <= self.dedicated_cpus


def due_weight(domain: Domain) -> int | None:
    """Return the weight that a guest must have, ``None`` for the kernel's default.

    As its flavor says where Nova has written that, else as its XML does.
    """
    if domain.extra_specs is None:
        return domain.shares
    shares = flavor_shares(domain)
    return None if shares is None else shares.weight(len(domain.vcpu_sets))
