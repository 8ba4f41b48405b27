"""``cpu-tiers host watch``: a resident exporter of what each guest of a compute host gets."""

import logging
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from operator import attrgetter
from threading import Thread
from typing import TYPE_CHECKING

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.inventory import Host
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.tools.frame.host_arguments import add_local_libvirt_argument, check_local
from cpu_tiers.tools.frame.host_files import read_host_files
from cpu_tiers.tools.frame.ladder_options import has_driver
from cpu_tiers.tools.frame.metrics import Metrics, collected, single
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.numbers import seconds_from
from cpu_tiers.tools.frame.provider_files import faults_at_start
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.host.metrics_server import Address, answering, bound
from cpu_tiers.tools.host.watched_guest import WAITS, HostReading, Waits, WatchedGuest
from cpu_tiers.tools.host.watched_host import WatchedHost
from cpu_tiers.tools.libvirt.connection import read_capabilities, read_domains, read_hostname
from cpu_tiers.tools.placement.inventories import read_shares
from cpu_tiers.tools.placement.session import connect

if TYPE_CHECKING:
    from prometheus_client import Metric

LOG = logging.getLogger(__name__)

_ASK_SECONDS, _ASK_AGAIN_SECONDS = 3600.0, 600.0
"""The seconds before Placement is asked again after an answer, and without an answer."""

DEFAULT_ADDRESS = Address("127.0.0.1", 9777)


class HostWatch(NovaConfCommand):
    """Count what each guest of a compute host gets, and answer Prometheus, until Ctrl-C.

    The counters are the CPU time of the vCPUs, their waits, the time in which a quota stopped
    the guest, and what was due to the guest and missing. The command asks libvirt about guests
    that appear or whose weight has changed, once in an hour about all, and then Placement what
    the host sells; all other figures are from files of the kernel.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--listen",
            type=Address.parse,
            default=DEFAULT_ADDRESS,
            metavar="ADDRESS:PORT",
            help="where Prometheus asks for the metrics, without encryption and without a "
            f"password; port 0 takes a free port (default: {DEFAULT_ADDRESS}, for programs of "
            "this machine only)",
        )
        parser.add_argument(
            "--interval",
            type=seconds_from(1),
            default=10.0,
            metavar="SECONDS",
            help="time between two readings, 1 to 3600 seconds (default: 10)",
        )
        add_local_libvirt_argument(parser)
        add_tier_argument(parser)

    def take_action(self, parsed_args: Namespace) -> None:
        check_local(parsed_args.connect)
        tiers, conf = read_tiers(parsed_args), self.nova_compute_conf()
        host: WatchedHost
        with bound(parsed_args.listen, WatchCollector(lambda: host.reading)) as server:
            capabilities = read_capabilities(parsed_args.connect)
            topology = parse_capabilities(capabilities, where=parsed_args.connect)
            describe = partial(read_domains, parsed_args.connect)
            host = WatchedHost(
                Host(name="this host", topology=topology),
                conf,
                lambda uuids: describe(uuids=uuids),
                tiers,
            )
            host.read()
            with answering(server) as address:
                LOG.info(
                    "Guests: %d; metrics: http://%s/metrics", len(host.reading.guests), address
                )
                name = partial(read_hostname, parsed_args.connect)
                _watch(host, parsed_args.interval, partial(_ask_placement, host, conf, name))


def pending_changes(guests: Iterable[WatchedGuest], held: Mapping[str, int]) -> int:
    """Return how many guests hold more shares than their running tier requests.

    nova-api claims a higher tier before nova-compute sets the weight of the guest, and a lower
    tier is in the metadata of the guest before its weight (decision D113).

    :param held: the shares that each consumer holds, by its uuid.
    """
    return sum(
        guest.claim is not None and held.get(guest.domain.uuid or "", 0) > guest.claim
        for guest in guests
    )


def tell_file_faults(conf: cfg.ConfigOpts, name: str, held: int) -> int:
    """Log what stops the next start of nova-compute, or loses the shares; return how many faults.

    :param held: the shares that servers of the host hold.
    """
    files, needs_file = read_host_files(conf, name), has_driver(conf) is False
    faults = faults_at_start(files, held=held, needs_file=needs_file)
    for fault in faults:
        LOG.warning("%s", fault)
    return len(faults)


def _ask_placement(host: WatchedHost, conf: cfg.ConfigOpts, name: Callable[[], str]) -> None:
    """Ask Placement again and again what the host sells, beside the readings.

    Until Placement answers, the host sells what nova.conf says. No failure ends the thread.
    """

    def ask() -> None:
        while True:
            pause = _ASK_SECONDS
            try:
                with connect(conf) as client:
                    shares = read_shares(client, name())
                    host.sale_by_placement = shares.sale
                    host.pending_changes = pending_changes(host.reading.guests, shares.held)
                    host.describes_again = True  # before Placement is asked again
                pause = _ASK_AGAIN_SECONDS if host.pending_changes else pause
                host.file_faults = tell_file_faults(conf, name(), sum(shares.held.values()))
            except PlacementMisconfigured as error:
                LOG.info("nova.conf alone says what is sold: %s", str(error).partition(";")[0])
            except Exception as error:
                text = str(error) if isinstance(error, CpuTiersError) else repr(error)
                LOG.warning("Placement does not say what the host sells: %s", text)
                pause = _ASK_AGAIN_SECONDS
            time.sleep(pause)

    Thread(target=ask, name="placement", daemon=True).start()


def _watch(host: WatchedHost, interval: float, ask: Callable[[], None]) -> None:
    start, readings = time.monotonic(), 1
    try:
        ask()
        while True:
            passed = time.monotonic() - start
            time.sleep(interval - passed % interval)
            host.read()
            readings += 1
    except KeyboardInterrupt:
        seconds = time.monotonic() - start
        text = f"The watch has ended after {seconds:.0f} seconds and {readings} readings."
        raise KeyboardInterrupt(text) from None


PREFIX = "watch"
LABELS = ("guest", "uuid", "tier", "flavor")

_COUNTERS = {
    "ran_seconds": ("CPU time of the vCPUs", "totals.ran"),
    "waited_seconds": ("Time in which vCPUs waited for a CPU", "totals.waited"),
    "runs": ("How many times a vCPU began to run", "totals.runs"),
    "throttled_seconds": (
        "Time in which a quota stopped threads of the guest, since the start of the guest",
        "stalls.throttled",
    ),
    "pressure_seconds": (
        "Time in which at least one thread of the guest waited for a CPU (PSI, cgroup v2 only),"
        " since the start of the guest",
        "stalls.pressure",
    ),
    "due_seconds": ("CPU time that was due to the guest while it wanted to run", "totals.due"),
    "missing_seconds": (
        "What the guest did not get of the due time, and did not get at once afterwards",
        "totals.missing",
    ),
    "under_class_seconds": (
        "Time in which vCPUs to which the CPUs of the class V of SCS-0100 are due had less than"
        " this part of the time in which they wanted to run",
        "totals.under_class",
    ),
}
"""Names, help texts and attributes of the counters of a guest."""

_GAUGES = {
    "sold_cpus": ("CPUs that the shares of the guest are sold as", "sold"),
    "quota_cpus": ("CPUs that the quotas in the XML of the guest leave its vCPUs", "cap"),
    "due_cpus": ("CPUs that are due to the busy guest", "due"),
    "floor_cpus": ("CPUs of the busy guest wherever the kernel has put the vCPUs", "floor"),
    "entitlement_cpus": ("CPUs of the guest while all vCPUs of all guests run", "entitlement"),
}
"""Names, help texts and attributes of the gauges of a guest."""


class WatchCollector:
    """Makes the metrics of the last reading. prometheus_client calls :meth:`collect`."""

    def __init__(self, reading: Callable[[], HostReading]) -> None:
        self._reading = reading

    def collect(self) -> Iterator["Metric"]:
        reading = self._reading()
        yield from collected(_metrics(reading))
        yield _of_tiers(reading.waits)


def _metrics(reading: HostReading) -> Iterator[Metrics]:
    unknown = "Processes with the uuid of a domain that are not under watch"
    pending = "Guests that hold more shares than their running tier requests"
    faults = "Faults of provider.yaml: nova-compute does not start, or loses shares"
    of_class = "What a vCPU of the class V of SCS-0100 has of a CPU, a core or a thread"
    pressure = "Time in which at least one thread of the machine waited for a CPU (PSI)"
    for is_counter, name, text, value in (
        (False, "guests", "Guests under watch", len(reading.guests)),
        (False, "unknown_processes", unknown, reading.unknown),
        (False, "reading_timestamp_seconds", "Time of the last reading", reading.taken_at),
        (True, "unread_files", "Files that could not be read", reading.unread),
        (True, "machine_pressure_seconds", pressure, reading.machine_pressure),
        (True, "host_due_seconds", "CPU time that was due to all guests", reading.due),
        (True, "host_missing_seconds", "What all guests did not get", reading.missing),
        (False, "host_shares", "Shares that the host sells", reading.shares),
        (False, "pending_tier_changes", pending, reading.pending_changes),
        (False, "provider_file_faults", faults, reading.file_faults),
        (False, "class_cpus", of_class, reading.class_cpus),
        (False, "host_weight_shares", "Weights that compete, in shares", reading.weights),
    ):
        if value is not None:
            yield single(f"{PREFIX}_{name}", text, value, is_counter=is_counter)
    kept = "Part of its sold CPUs that a share keeps on oversold CPUs, such as a NUMA node"
    sets = [((str(oversold.cpus),), float(oversold.kept)) for oversold in reading.oversold]
    yield Metrics(f"{PREFIX}_oversold_cpus_kept_ratio", kept, sets, ["cpus"])
    guests = [(guest, _labels(guest)) for guest in reading.guests]
    for is_counter, metrics in ((True, _COUNTERS), (False, _GAUGES)):
        for name, (text, attribute) in metrics.items():
            value_of = attrgetter(attribute)
            samples = [
                (labels, value)
                for guest, labels in guests
                if (value := value_of(guest)) is not None
            ]
            yield Metrics(f"{PREFIX}_{name}", text, samples, LABELS, is_counter)


def _labels(guest: WatchedGuest) -> tuple[str, ...]:
    domain = guest.domain
    return domain.name, domain.uuid or "", guest.tier, domain.flavor or ""


def _of_tiers(waits: Mapping[str, Waits]) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(
        f"cpu_tiers_{PREFIX}_wait_seconds",
        "How long vCPUs waited before each run: the average of a vCPU between two readings",
        labels=("tier",),
    )
    bounds = [*map(str, WAITS), "+Inf"]
    for tier, tier_waits in waits.items():
        buckets = list(zip(bounds, accumulate(tier_waits.runs), strict=True))
        family.add_metric((tier,), buckets, tier_waits.seconds)
    return family
