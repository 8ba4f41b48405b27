"""The evidence of an audit: the guests of a host as libvirt, the kernel and Placement see them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.frame.provider_files import ProviderFiles
from cpu_tiers.tools.host.checks.guest_weight import due_weight, is_dedicated
from cpu_tiers.tools.tiers.domain import CpuTime, Domain, GuestCgroup, HostCgroups, HostLoad
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import HostShares, Sale


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A host, its guests, and the measurements of one audit.

    :param host: the guests, with the weights that they must have.
    :param dedicated_cpus: the CPUs to which vCPUs are pinned one by one.
    :param cgroups: ``None`` if the cgroups could not be read.
    :param allocated: ``None`` if Placement was not queried.
    :param spent: the CPU time of each vCPU in the interval, by the uuid of the guest.
    :param load: what else took CPU time in the interval.
    :param throttled: how long a quota stopped threads in the interval, in seconds, by the uuid of
        the guest.
    :param seconds: the length of the interval; 0 if nothing was measured.
    :param untiered_weight: the weight that nova-compute gives a guest without a tier; ``None`` for
        no weight, and the default of the kernel.
    :param step: the step of the ladder on which the host stands, which decides about remedies.
    :param needs_file: nova-compute runs Nova's own driver, and only a file reports shares.
    :param has_threads: a core of the host has several CPUs.
    :param provider_files: the provider.yaml of the host; ``None`` if nobody looked.
    """

    host: Occupancy
    dedicated_cpus: CpuSet
    cgroups: HostCgroups | None = None
    allocated: HostShares | None = None
    spent: Mapping[str, tuple[CpuTime, ...]] = field(default_factory=dict)
    load: HostLoad = field(default_factory=HostLoad)
    throttled: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    untiered_weight: int | None = None
    step: Step = Step.DRIVER
    needs_file: bool = False
    has_threads: bool = False
    provider_files: ProviderFiles | None = None

    @property
    def sale(self) -> Sale | None:
        """Return the sold shares by Placement, otherwise by nova.conf."""
        by_placement = self.allocated.sale if self.allocated else None
        return by_placement or Sale.of(self.host.inventories)

    def cgroup(self, domain: Domain) -> GuestCgroup | None:
        """Return the cgroup of a guest, or ``None`` if it was not found."""
        return self.cgroups.guests.get(domain.uuid or "") if self.cgroups else None

    def due_weight(self, domain: Domain) -> int | None:
        """Return the weight that a guest must have, or ``None`` for the default of the kernel."""
        return due_weight(domain, self.untiered_weight)

    def is_dedicated(self, cpus: CpuSet | None) -> bool:
        """Tell whether a vCPU with this CPU set is dedicated: pinned to a single dedicated CPU."""
        return is_dedicated(cpus, self.dedicated_cpus)
