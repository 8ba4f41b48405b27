"""The guests of this machine under watch, and the totals of each guest.

libvirt is asked only about new guests. The totals are sums over intervals, in which CPU time is
due to a guest for the time in which it wanted to run
(:mod:`cpu_tiers.tools.host.checks.delivery`).
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.inventory import Host
from cpu_tiers.tools.cgroup import hierarchy
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import HOST_PRESSURE, Stalls
from cpu_tiers.tools.cgroup.host import quotas_inside, read_around, read_host
from cpu_tiers.tools.cgroup.processes import Newcomers, read_cpu_times, read_process_time
from cpu_tiers.tools.frame.server_arguments import tier_names
from cpu_tiers.tools.host.checks.delivery import delivery_of, with_late_waits
from cpu_tiers.tools.host.checks.due import Dues
from cpu_tiers.tools.host.host_promises import HostPromises
from cpu_tiers.tools.host.watched_guest import HostReading, Waits, WatchedGuest
from cpu_tiers.tools.libvirt.connection import RunningDomain
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.tiers.cpu_sets import ContestedCpus
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, CpuTime, Domain, GuestCgroup, between
from cpu_tiers.tools.tiers.occupancy import Figures
from cpu_tiers.tools.tiers.sold import Sale
from cpu_tiers.tools.tiers.tier import Tier

LOG = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""The seconds before libvirt is asked again about processes that it did not describe."""

_SILENCE = 3600.0
"""The seconds before a warning is logged again."""

_WEIGH_SECONDS = 60.0
"""The seconds between two looks at the weights of the cgroups of the guests."""


class _Used(NamedTuple):
    """The CPU time of a guest since its last reading, and the reading.

    :param times: the CPU time of each vCPU since its start.
    :param spent: the CPU time of each vCPU since the last reading.
    :param process_ran: the CPU time of the process since its start; ``None`` if the vCPUs hardly
        waited, and nothing can be missing.
    """

    at: float
    times: tuple[CpuTime, ...]
    spent: tuple[CpuTime, ...]
    stalls: Stalls
    process_ran: float | None


_HARDLY = 0.01
"""The part of an interval that the vCPUs of a guest wait without a need to look further."""


Describe = Callable[[Collection[str]], Iterable[RunningDomain]]
"""From the uuids of domains to the domains that libvirt runs."""


def _with_promise(guest: WatchedGuest, figures: Figures | None, dues: Dues | None) -> WatchedGuest:
    """Return a guest with its promise; without unknown numbers."""
    return replace(
        guest,
        claim=dues.claim if dues else None,
        sold=float(dues.sold) if dues else None,
        due=float(dues.cpus) if dues else None,
        floor=float(figures.floor) if figures else None,
        entitlement=float(figures.entitlement) if figures else None,
        cap=dues.cap_cpus if dues else None,
        rates=tuple(map(float, dues.vcpus)) if dues else (),
    )


class WatchedHost:
    """The machine of this process.

    :ivar reading: the last reading. Other threads may look at it at any time.
    :ivar sale_by_placement: what the host sells by Placement; ``None`` for what nova.conf says.
        Other threads may set it at any time.
    :ivar pending_changes: the number of guests whose tier has still to change; as above.
    :ivar describes_again: libvirt has to describe all guests once more; as above.
    :ivar file_faults: the number of faults of the provider.yaml of the host; as above.
    """

    def __init__(
        self,
        host: Host,
        conf: cfg.ConfigOpts,
        describe: Describe,
        tiers: Collection[Tier] = (),
        files: Files | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without guests; an InvalidInput if this machine has no cgroups."""
        self.reading = HostReading()
        self.sale_by_placement: Sale | None = None
        self.pending_changes = self.file_faults = 0
        self.describes_again = False
        self._promises = HostPromises(host, conf)
        self._due = self._missing = 0.0
        self._weigh_at = self._weights = 0.0
        self._oversold: tuple[ContestedCpus, ...] = ()
        self._describe, self._clock = describe, clock
        self._tiers, self._waits = tiers, dict[str, Waits]()
        self._files = files or Files()
        self._hierarchy = hierarchy.find_hierarchy(self._files)
        self._newcomers = Newcomers()
        self._guests: dict[str, WatchedGuest] = {}
        self._asked: frozenset[str] = frozenset()
        self._ask_at, self._pause = 0.0, _FIRST_PAUSE
        self._changed = set[str]()
        self._unread, self._said = 0, dict[str, float]()

    def read(self) -> None:
        """Read the CPU time of the guests since the last reading, and notice new guests."""
        before = self._guests
        used = {uuid: self._used(uuid, guest) for uuid, guest in before.items()}
        self._guests = {uuid: guest for uuid, guest in before.items() if used[uuid]}
        running = self._newcomers.uuids(self._files, self._clock())
        self._admit(running - self._guests.keys())
        is_changed = before.keys() != self._guests.keys()
        if self._promises.is_other(self.sale_by_placement) or is_changed:
            self._entitle()
        if is_changed:
            LOG.info("Guests under watch: %d", len(self._guests))
        for uuid, spent in used.items():
            if spent:
                self._guests[uuid] = self._counted(before[uuid], self._guests[uuid], spent)
        self._weigh()
        self._tell(len(running - self._guests.keys()))

    def _tell(self, unknown: int) -> None:
        """Make the reading, and log what could not be read."""
        pressure = None
        with self._files.noted(HOST_PRESSURE):
            pressure = hierarchy.read_pressure(self._files, HOST_PRESSURE)
        self._unread += len(self._files.faults)
        for fault in self._files.faults:
            if self._is_new(fault):
                LOG.warning("%s", fault)
        self._files.faults.clear()
        sale = self._promises.sale
        self.reading = HostReading(
            guests=tuple(self._guests.values()),
            waits=dict(self._waits),
            taken_at=time.time(),
            unknown=unknown,
            unread=self._unread,
            machine_pressure=pressure,
            due=self._due,
            missing=self._missing,
            shares=float(sale.for_sale) if sale else None,
            weights=self._weights,
            class_cpus=self._promises.class_cpus,
            oversold=self._oversold,
            pending_changes=self.pending_changes,
            file_faults=self.file_faults,
        )

    def _used(self, uuid: str, guest: WatchedGuest) -> _Used | None:
        """Return the CPU time of a guest since its last reading, or ``None`` after its end.

        A restarted guest, or a guest with changed vCPUs, has ended as well: the guest appears as
        new.
        """
        now, times = self._clock(), read_cpu_times(self._files, {uuid: guest.cgroup})
        spent = between({uuid: guest.times}, times).get(uuid)
        if spent is None:
            return None
        stalls = self._stalls(guest.cgroup.path, guest.limited) or guest.stalls
        process = None
        if sum(vcpu.waited for vcpu in spent) > _HARDLY * (now - guest.read_at):
            process = self._process_ran(guest.cgroup.pid, guest.process_ran)
        return _Used(now, times[uuid], spent, stalls, process)

    def _process_ran(self, pid: str, default: float = 0.0) -> float:
        ran = default
        with self._files.noted(f"/proc/{pid}/stat"):
            ran = read_process_time(self._files, pid)
        return ran  # noqa: RET504  # noted() suppresses errors

    def _counted(self, before: WatchedGuest, guest: WatchedGuest, used: _Used) -> WatchedGuest:
        """Return a guest with its CPU time since its last reading.

        :param before: the guest with what was due beside the guests of the last reading. While
            guests appear and end, no more is due than before and afterwards.
        """
        seconds, rates = used.at - before.read_at, guest.rates
        if rates is not before.rates:
            rates = tuple(map(min, rates, before.rates))
        process_ran, qemu_cpus = used.process_ran, 0.0
        vcpus_ran = before.totals.ran + sum(vcpu.ran for vcpu in used.spent)
        if process_ran is not None:
            qemu_cpus = process_ran - guest.process_ran
            qemu_cpus -= (1 + self._promises.overhead) * (vcpus_ran - guest.vcpus_ran)
        spent, late_waits = with_late_waits(used.spent, seconds, before.late_waits)
        delivery = delivery_of(
            spent,
            seconds,
            rates,
            cap=guest.cap,
            throttled=used.stalls.throttled - before.stalls.throttled,
            qemu_cpus=max(0.0, qemu_cpus / seconds),
            of_class=self._promises.class_cpus,
        )
        totals = before.totals.plus(used.spent, delivery)
        self._due += totals.due - before.totals.due
        self._missing += totals.missing - before.totals.missing
        self._waits[guest.tier] = self._waits.get(guest.tier, Waits()).plus(used.spent)
        return replace(
            guest,
            times=used.times,
            read_at=used.at,
            totals=totals,
            stalls=used.stalls,
            process_ran=guest.process_ran if process_ran is None else process_ran,
            vcpus_ran=guest.vcpus_ran if process_ran is None else vcpus_ran,
            late_waits=late_waits,
        )

    def _weigh(self) -> None:
        """Read from time to time what changes seldom, or matters only while vCPUs wait.

        Somebody may have changed the weight of a guest. The CPU time of a process is then compared
        with that of its vCPUs since a minute ago at most.
        """
        now = self._clock()
        if now < self._weigh_at:
            return
        self._weigh_at = now + _WEIGH_SECONDS
        for uuid, guest in self._guests.items():
            weight = guest.cgroup.weight
            with self._files.noted(guest.cgroup.path):
                weight = self._hierarchy.weight(self._files, guest.cgroup.path)
            if weight != guest.cgroup.weight or self.describes_again:
                self._changed.add(uuid)
            self._guests[uuid] = replace(
                guest,
                cgroup=replace(guest.cgroup, weight=weight),
                process_ran=self._process_ran(guest.cgroup.pid, guest.process_ran),
                vcpus_ran=guest.totals.ran,
            )
        self.describes_again = False
        if not self._describe_again():
            self._add_up_weights()

    def _describe_again(self) -> bool:
        """Take over the tiers of guests that may have another; tell whether there are any.

        nova-compute changes the tier of a running guest (decision D113).
        """
        self._changed &= self._guests.keys()
        if not self._changed:
            return False
        try:
            domains = list(self._parse(self._describe(self._changed)))
        except CpuTiersError as error:
            if self._is_new(error):
                LOG.warning("Guests with another weight keep their tiers: %s", error)
            return False
        for domain in domains:
            if guest := self._guests.get(domain.uuid or ""):
                self._guests[domain.uuid or ""] = replace(guest, domain=domain)
        self._changed.clear()
        self._entitle()
        return True

    def _add_up_weights(self) -> None:
        cgroups = {uuid: guest.cgroup for uuid, guest in self._guests.items()}
        around = read_around(self._files, self._hierarchy, cgroups)
        self._weights, self._oversold = self._promises.weights(self._guests.values(), around)

    def _stalls(self, path: str, limited: tuple[str, ...]) -> Stalls | None:
        stalls = None
        with self._files.noted(path):
            stalls = hierarchy.read_stalls(self._files, self._hierarchy, path, limited)
        return stalls  # noqa: RET504  # noted() suppresses errors

    def _admit(self, uuids: frozenset[str]) -> None:
        now = self._clock()
        if uuids != self._asked:
            self._ask_at, self._pause = now, _FIRST_PAUSE
        self._asked = uuids
        if not uuids or now < self._ask_at:
            return
        self._ask_at, self._pause = now + self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        try:
            domains = list(self._parse(self._describe(uuids)))
            found = read_host(domains, self._files)
        except CpuTiersError as error:
            if self._is_new(error):
                LOG.warning("New guests are not watched yet: %s", error)
            return
        for domain in domains:
            uuid = domain.uuid or ""
            if uuid in found.guests:
                self._watch(uuid, domain, found.guests[uuid], tuple(found.quotas))

    def _parse(self, running: Iterable[RunningDomain]) -> Iterator[Domain]:
        for guest in running:
            try:
                yield parse_domain(guest.xml, where=f"guest {guest.name}")
            except InvalidInput as error:
                if self._is_new(error):
                    LOG.warning("Guest %s is not watched: %s", printable(guest.name), error)

    def _watch(
        self, uuid: str, domain: Domain, cgroup: GuestCgroup, quotas: tuple[str, ...]
    ) -> None:
        """Watch a guest from now on, unless QEMU has no thread for each vCPU yet."""
        now, times = self._clock(), read_cpu_times(self._files, {uuid: cgroup})
        limited = quotas_inside(quotas, cgroup.path)
        stalls = self._stalls(cgroup.path, limited)
        if len(times.get(uuid, ())) == len(domain.vcpu_sets) and stalls is not None:
            self._guests[uuid] = WatchedGuest(
                domain=domain,
                cgroup=cgroup,
                limited=limited,
                times=times[uuid],
                read_at=now,
                stalls=stalls,
                process_ran=self._process_ran(cgroup.pid),
            )

    def _entitle(self) -> None:
        domains = [guest.domain for guest in self._guests.values()]
        tiers = tier_names(domains, self._tiers)
        entitled: Mapping[str, tuple[Figures, Dues]] = {}
        try:
            default = DEFAULT_WEIGHT[self._hierarchy.version]
            entitled = self._promises.made_to(domains, default, self.sale_by_placement)
        except InvalidInput as error:
            if self._is_new(error):
                LOG.warning("The floors of the guests are not known: %s", error)
        for uuid, guest in self._guests.items():
            name = guest.domain.name
            tiered = replace(guest, tier=tiers[name] or "")
            self._guests[uuid] = _with_promise(tiered, *entitled.get(name, (None, None)))
        self._add_up_weights()

    def _is_new(self, reason: object) -> bool:
        """Tell whether a reason for a warning has not been logged in the last hour."""
        now, text = self._clock(), str(reason)
        self._said = {each: said for each, said in self._said.items() if now - said < _SILENCE}
        is_new = text not in self._said
        self._said.setdefault(text, now)
        return is_new
