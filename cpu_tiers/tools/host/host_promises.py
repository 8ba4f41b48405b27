"""What a host promises its guests, by its nova.conf and by Placement."""

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

from oslo_config import cfg

from cpu_tiers.conf.read import inventory_options
from cpu_tiers.inventory import Host
from cpu_tiers.inventory.cpus import pinned_cpus
from cpu_tiers.tools.frame.host_arguments import host_inventories
from cpu_tiers.tools.host.audit_evidence import promised_occupancy
from cpu_tiers.tools.host.checks.due import Dues, dues_of
from cpu_tiers.tools.host.checks.guest_weight import shared_vcpus
from cpu_tiers.tools.host.checks.oversold import foreign_weights, oversold_sets
from cpu_tiers.tools.host.watched_guest import WatchedGuest
from cpu_tiers.tools.tiers.cpu_sets import ContestedCpus, SharedVcpus
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups
from cpu_tiers.tools.tiers.occupancy import Figures
from cpu_tiers.tools.tiers.sold import Sale, class_cpus


class HostPromises:
    """What a host promises its guests, by its nova.conf and by Placement.

    :ivar sale: what the host sells, by the last computation.
    :ivar class_cpus: what a vCPU of the class V of SCS-0100 has of a CPU.
    :ivar overhead: the CPU time of QEMU's own threads that is taken off what is due, divided by
        that of the vCPUs.
    """

    def __init__(self, host: Host, conf: cfg.ConfigOpts) -> None:
        self._host, self._conf = host, conf
        options = inventory_options(conf)
        self._by_options = Sale.of(host_inventories(host, options))
        self._dedicated = pinned_cpus(host, options)
        self.overhead = options.emulator_overhead_percent / 100
        self.class_cpus = float(class_cpus(has_threads=host.topology.has_threads))
        self.sale = self._by_options

    def is_other(self, by_placement: Sale | None) -> bool:
        """Tell whether the host sells something else than at the last computation."""
        return self.sale != (by_placement or self._by_options)

    def made_to(
        self, domains: Collection[Domain], default_weight: int, by_placement: Sale | None
    ) -> Mapping[str, tuple[Figures, Dues]]:
        """Return the entitlement and the due CPUs of each guest, by its name.

        :raises InvalidInput: nova.conf does not fit the host, or a guest does not.
        """
        self.sale = by_placement or self._by_options
        occupancy = promised_occupancy(self._host, self._conf, domains, default_weight)
        dues = dues_of(occupancy, self._dedicated, self.sale)
        return {name: (figures, dues[name]) for name, figures in occupancy.figures().items()}

    def weights(
        self, guests: Iterable[WatchedGuest], around: HostCgroups
    ) -> tuple[float, tuple[ContestedCpus, ...]]:
        """Return what competes on the shared CPUs, in shares, and the oversold sets of CPUs.

        :param around: the cgroups above and beside the guests.
        """
        host_cpus, vcpus = self._host.topology.cpus, list[SharedVcpus]()
        weights = around.competing_weights()
        for guest in guests:
            weight = weights.get(guest.domain.uuid or "", Fraction(0))
            vcpus += shared_vcpus(guest.domain, weight, host_cpus, self._dedicated)
        guests_weight = sum((each.weight for each in vcpus), Fraction(0))
        total = float(guests_weight + sum(foreign_weights(around, guests_weight)))
        return total, tuple(oversold_sets(vcpus, self.sale)) if self.sale else ()
