"""The guests of this machine under watch, and the totals of each guest.

libvirt is asked only about guests that appear. The totals are sums over intervals. In each
interval the guest is owed its floor, and its fair share, for the time in which it wanted to run
(see :mod:`cpu_tiers.tools.host.checks.delivery`).
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.inventory import Host
from cpu_tiers.tools.cgroup import hierarchy
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import HOST_PRESSURE, Stalls
from cpu_tiers.tools.cgroup.host import read_host
from cpu_tiers.tools.cgroup.processes import Newcomers, read_cpu_times
from cpu_tiers.tools.frame.server_arguments import tier_names
from cpu_tiers.tools.host.audit_evidence import promised_occupancy
from cpu_tiers.tools.host.checks.delivery import TOLERANCE, wanted_cpus
from cpu_tiers.tools.libvirt.connection import RunningDomain
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, CpuTime, Domain, GuestCgroup, between
from cpu_tiers.tools.tiers.occupancy import Entitlement
from cpu_tiers.tools.tiers.tier import Tier

LOG = logging.getLogger(__name__)

WAITS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""The upper bounds of the buckets of waits, in seconds. A further bucket has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long vCPUs waited before each run.

    The wait is the average of a vCPU in an interval: the kernel counts runs, and sums up waits.

    :param runs: for each bucket of :data:`WAITS`, and for longer waits, the number of runs.
    :param seconds: the sum of all waits.
    """

    runs: tuple[int, ...] = (0,) * (len(WAITS) + 1)
    seconds: float = 0.0

    def plus(self, spent: Sequence[CpuTime]) -> "Waits":
        """Return the waits with those of vCPUs in a further interval."""
        runs = list(self.runs)
        for vcpu in spent:
            if vcpu.runs:
                runs[bisect_left(WAITS, vcpu.waited / vcpu.runs)] += vcpu.runs
        seconds = self.seconds + sum(vcpu.waited for vcpu in spent)
        return Waits(runs=tuple(runs), seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums in seconds of CPU time, over all vCPUs of a guest.

    :param runs: how many times a vCPU began to run.
    :param owed_floor: the floor of the guest while it wanted to run.
    :param owed_fair: the fair share of the guest while it wanted to run.
    :param missing: what the guest ran less than its owed floor, in the intervals in which more
        than a tenth of the owed floor was missing.
    """

    ran: float = 0.0
    waited: float = 0.0
    runs: int = 0
    owed_floor: float = 0.0
    owed_fair: float = 0.0
    missing: float = 0.0

    def plus(
        self, spent: Sequence[CpuTime], seconds: float, rates: Sequence[tuple[float, float]]
    ) -> "Totals":
        """Return the totals with a further interval.

        :param spent: the CPU time of each vCPU in the interval.
        :param rates: the floor and the fair share of each vCPU in CPUs. The guest is owed nothing
            if there are not as many as vCPUs: the promises of the guest are not known.
        """
        ran = sum(vcpu.ran for vcpu in spent)
        floor = fair = 0.0
        if len(rates) == len(spent):
            wanted = wanted_cpus(spent, seconds)
            floor = seconds * sum(low * part for (low, _), part in zip(rates, wanted, strict=True))
            fair = seconds * sum(
                high * part for (_, high), part in zip(rates, wanted, strict=True)
            )
        missing = floor - ran
        return Totals(
            ran=self.ran + ran,
            waited=self.waited + sum(vcpu.waited for vcpu in spent),
            runs=self.runs + sum(vcpu.runs for vcpu in spent),
            owed_floor=self.owed_floor + floor,
            owed_fair=self.owed_fair + fair,
            missing=self.missing + (missing if missing > floor * TOLERANCE else 0.0),
        )


_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""The seconds before libvirt is asked again about processes that it did not describe."""

_SILENCE = 3600.0
"""The seconds before a warning is logged again."""

Describe = Callable[[Collection[str]], Iterable[RunningDomain]]
"""From the uuids of domains to the domains that libvirt runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedGuest:
    """A guest, and what the guest got since the watch has known it.

    :param limited: the paths of the cgroups in the cgroup of the guest that have a quota.
    :param times: the CPU time of each vCPU at the last reading, since the start of the vCPU.
    :param read_at: the time of the last reading, by the clock of the host.
    :param tier: the name of the tier; empty without a tier.
    :param rates: the floor and the fair share of each vCPU in CPUs; empty if the promises of the
        host are not known.
    """

    domain: Domain
    cgroup: GuestCgroup
    limited: tuple[str, ...]
    times: tuple[CpuTime, ...]
    read_at: float
    stalls: Stalls
    totals: Totals = field(default_factory=Totals)
    tier: str = ""
    rates: tuple[tuple[float, float], ...] = ()

    @property
    def floor(self) -> float | None:
        """Return the floor of the guest in CPUs; ``None`` if it is not known."""
        return sum(floor for floor, _ in self.rates) if self.rates else None

    @property
    def fair(self) -> float | None:
        """Return the fair share of the guest in CPUs; ``None`` if it is not known."""
        return sum(fair for _, fair in self.rates) if self.rates else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """The guests of the machine at a point in time.

    :param taken_at: seconds since 1970.
    :param unknown: the number of processes with the uuid of a domain that are not watched.
    :param waits: by the name of the tier, also of guests that have ended.
    :param unread: how often a file could not be read since the watch began.
    :param pressure: see :func:`~cpu_tiers.tools.cgroup.hierarchy.read_pressure`, for the machine.
    """

    guests: tuple[WatchedGuest, ...] = ()
    waits: Mapping[str, Waits] = field(default_factory=dict)
    taken_at: float = 0.0
    unknown: int = 0
    unread: int = 0
    pressure: float | None = None


class WatchedHost:
    """The machine of this process.

    :ivar reading: the last reading. Other threads may look at it at any time.
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
        self._host, self._conf, self._describe, self._clock = host, conf, describe, clock
        self._tiers, self._waits = tiers, dict[str, Waits]()
        self._files = files or Files()
        self._hierarchy = hierarchy.find_hierarchy(self._files)
        self._newcomers = Newcomers()
        self._guests: dict[str, WatchedGuest] = {}
        self._asked: frozenset[str] = frozenset()
        self._ask_at, self._pause = 0.0, _FIRST_PAUSE
        self._unread, self._said = 0, dict[str, float]()

    def read(self) -> None:
        """Read what the guests got since the last reading, and notice guests that appeared."""
        before = set(self._guests)
        read = {uuid: self._next(uuid, guest) for uuid, guest in self._guests.items()}
        self._guests = {uuid: guest for uuid, guest in read.items() if guest is not None}
        running = self._newcomers.uuids(self._files, self._clock())
        self._admit(running - self._guests.keys())
        if before != self._guests.keys():
            self._entitle()
            LOG.info("Guests under watch: %d", len(self._guests))
        pressure = None
        with self._files.noted(HOST_PRESSURE):
            pressure = hierarchy.read_pressure(self._files, HOST_PRESSURE)
        self._unread += len(self._files.faults)
        for fault in self._files.faults:
            if self._is_new(fault):
                LOG.warning("%s", fault)
        self._files.faults.clear()
        self.reading = HostReading(
            guests=tuple(self._guests.values()),
            waits=dict(self._waits),
            taken_at=time.time(),
            unknown=len(running - self._guests.keys()),
            unread=self._unread,
            pressure=pressure,
        )

    def _next(self, uuid: str, guest: WatchedGuest) -> WatchedGuest | None:
        """Return a guest with the time since its last reading, or ``None`` if it has ended.

        A restarted guest, or a guest with changed vCPUs, has ended as well: the guest appears as
        new.
        """
        now, times = self._clock(), read_cpu_times(self._files, {uuid: guest.cgroup})
        spent = between({uuid: guest.times}, times).get(uuid)
        if spent is None:
            return None
        totals = guest.totals.plus(spent, now - guest.read_at, guest.rates)
        self._waits[guest.tier] = self._waits.get(guest.tier, Waits()).plus(spent)
        stalls = self._stalls(guest.cgroup.path, guest.limited) or guest.stalls
        return replace(guest, times=times[uuid], read_at=now, totals=totals, stalls=stalls)

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
        limited = tuple(path for path in quotas if path.startswith(f"{cgroup.path}/"))
        stalls = self._stalls(cgroup.path, limited)
        if len(times.get(uuid, ())) == len(domain.vcpu_sets) and stalls is not None:
            self._guests[uuid] = WatchedGuest(
                domain=domain,
                cgroup=cgroup,
                limited=limited,
                times=times[uuid],
                read_at=now,
                stalls=stalls,
            )

    def _entitle(self) -> None:
        domains = [guest.domain for guest in self._guests.values()]
        tiers = tier_names(domains, self._tiers)
        default = DEFAULT_WEIGHT[self._hierarchy.version]
        rates: Mapping[str, tuple[Entitlement, ...]] = {}
        try:
            occupancy = promised_occupancy(self._host, self._conf, domains, default)
            rates = occupancy.vcpu_entitlements()
        except InvalidInput as error:
            if self._is_new(error):
                LOG.warning("The floors of the guests are not known: %s", error)
        for uuid, guest in self._guests.items():
            name = guest.domain.name
            self._guests[uuid] = replace(
                guest,
                tier=tiers[name] or "",
                rates=tuple((float(vcpu.floor), float(vcpu.fair)) for vcpu in rates.get(name, ())),
            )

    def _is_new(self, reason: object) -> bool:
        """Tell whether a reason for a warning has not been logged in the last hour."""
        now, text = self._clock(), str(reason)
        self._said = {each: said for each, said in self._said.items() if now - said < _SILENCE}
        is_new = text not in self._said
        self._said.setdefault(text, now)
        return is_new
