"""Gathering the evidence of an audit from libvirt, the kernel and Placement."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from oslo_config import cfg

from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError, Fault, InvalidInput, printable
from cpu_tiers.extra_specs.shares import LEAST_GUEST_WEIGHT
from cpu_tiers.inventory import Host
from cpu_tiers.inventory.cpus import check_cpu_sets, pinned_cpus
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.tools.cgroup.host import Measurement, measure, read_host
from cpu_tiers.tools.frame.host_arguments import occupancy_of
from cpu_tiers.tools.frame.host_files import read_host_files
from cpu_tiers.tools.frame.ladder_options import has_driver
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.libvirt.connection import read_capabilities, read_domains, read_hostname
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.placement.inventories import held_elsewhere, read_shares
from cpu_tiers.tools.placement.session import connect
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, Domain, HostCgroups, HostLoad
from cpu_tiers.tools.tiers.ladder import step_of_host
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import HostShares, Sale

LOG = logging.getLogger(__name__)


class GatheredEvidence(NamedTuple):
    """The evidence, and a finding for each source that could not be read."""

    hostname: str
    evidence: Evidence
    unread: list[Finding]


def gather(
    uri: str, conf: cfg.ConfigOpts, *, embedded: bool, hostname: str | None, interval: float
) -> GatheredEvidence:
    """Return the evidence; a source that cannot be read is left out and becomes a finding.

    :param uri: the connection URI of libvirt.
    :param embedded: use an empty Placement inside the process instead of nova.conf's.
    :param hostname: the name of the host's provider; ``None`` for the host name that libvirt
        returns, which is the name that Nova uses.
    :param interval: seconds to measure CPU time; 0 to measure nothing.
    :raises InvalidInput: nova.conf does not fit the host.
    :raises LibvirtUnavailable: libvirt does not list the guests.
    """
    unread: list[Finding] = []
    options = inventory_options(conf)
    name = hostname or read_hostname(uri)
    host = Host(name=name, topology=parse_capabilities(read_capabilities(uri), where=uri))
    check_cpu_sets(host, options)
    domains = list(_domains(uri, unread))
    cgroups = _cgroups(uri, domains, unread)
    allocated = _allocated(conf, name, domains, unread, embedded=embedded)
    measured = _measure(interval, cgroups, unread)
    default = DEFAULT_WEIGHT[cgroups.version if cgroups else 2]
    host_occupancy = promised_occupancy(host, conf, domains, default)
    if conf.libvirt.report_vcpu_shares and allocated:
        unread += differing_sales(host_occupancy.inventories, allocated.sale)
    evidence = Evidence(
        host=host_occupancy,
        dedicated_cpus=pinned_cpus(host, options),
        cgroups=cgroups,
        allocated=allocated,
        spent=measured.spent if measured else {},
        load=measured.load if measured else HostLoad(),
        throttled=measured.throttled if measured else {},
        seconds=measured.seconds if measured else 0.0,
        untiered_weight=untiered_weight(conf),
        step=step_of_host(
            reports_shares=bool(allocated and allocated.capacity is not None),
            has_driver=has_driver(conf),
            reports_nodes=bool(options.enable_numa_reporting_to_placement),
        ),
        needs_file=has_driver(conf) is False,
        has_threads=host.topology.has_threads,
        provider_files=read_host_files(conf, name),
    )
    return GatheredEvidence(name, evidence, unread)


def promised_occupancy(
    host: Host, conf: cfg.ConfigOpts, domains: Iterable[Domain], default_weight: int
) -> Occupancy:
    """Return a host with the due weight of each guest.

    :param default_weight: the weight that the kernel gives a new cgroup.
    :raises InvalidInput: nova.conf does not fit the host, or a guest does not.
    """
    untiered = untiered_weight(conf)
    weighted = (
        replace(domain, weight=due_weight(domain, untiered) or default_weight)
        for domain in domains
    )
    return occupancy_of(host, inventory_options(conf), weighted, default_weight)


def differing_sales(inventories: Mapping[str, Inventory], sale: Sale | None) -> Iterator[Finding]:
    """Yield a finding if nova.conf and Placement sell a share as different numbers of CPUs.

    An initial ratio is no difference: Placement keeps the ratio that an operator has set.
    """
    root_sale = Sale.of(inventories)
    if root_sale is None or sale is None or inventories[VCPU_SHARES].ratio_is_initial:
        return
    if root_sale.cpus_per_share != sale.cpus_per_share:
        text = (
            f"100 shares are sold as {float(100 * sale.cpus_per_share):.4g} CPUs by Placement, and"
            f" as {float(100 * root_sale.cpus_per_share):.4g} by nova.conf"
        )
        yield Finding(kind=Kind.SOLD, where="host", found=text)


def untiered_weight(conf: cfg.ConfigOpts) -> int | None:
    """Return the weight of a guest without a tier; ``None`` for the default of the kernel.

    Only the driver of cpu-tiers reads the option.
    """
    reads_option = has_driver(conf) and conf.libvirt.least_weight_without_tier
    return LEAST_GUEST_WEIGHT if reads_option else None


@contextmanager
def _errors_as_findings(unread: list[Finding], where: str) -> Iterator[None]:
    """Turn an error into findings, and let the audit continue without this source."""
    try:
        yield
    except InvalidInput as error:
        unread += _unread(error.faults)
    except CpuTiersError as error:
        unread.append(Finding(kind=Kind.UNREAD, where=where, found=str(error)))


def _domains(uri: str, unread: list[Finding]) -> Iterator[Domain]:
    for running in read_domains(uri):
        where = f"guest {running.name}"
        with _errors_as_findings(unread, where):
            yield parse_domain(running.xml, where=where)


def _cgroups(uri: str, domains: list[Domain], unread: list[Finding]) -> HostCgroups | None:
    cgroups = None
    with _errors_as_findings(unread, "cgroups"):
        cgroups = read_host(domains)
        unread += _unread(cgroups.faults)
        unread += _stopped(domains, cgroups)
        missing = [domain for domain in domains if domain.uuid not in cgroups.guests]
        if missing and not cgroups.faults:
            _explain(uri, missing, unread)
    return cgroups


def _stopped(domains: Iterable[Domain], cgroups: HostCgroups) -> Iterator[Finding]:
    """Yield the guests with a stopped QEMU process, which are not measured."""
    for domain in domains:
        cgroup = cgroups.guests.get(domain.uuid or "")
        if cgroup and cgroup.stopped:
            reason = (
                f"its QEMU process {cgroup.pid} is stopped, so its CPU time is not measured, and"
                " libvirt waits for it; kill -CONT continues it"
            )
            yield Finding.of_guest(Kind.UNREAD, domain, reason)


def _explain(uri: str, missing: list[Domain], unread: list[Finding]) -> None:
    """Add a finding for each running guest without a visible process.

    A guest that has ended since the list of libvirt is only logged.
    """
    reason = (
        "no visible QEMU process has the uuid, the program and the user of the guest; run the"
        " audit as root on the compute host"
    )
    running = {domain.name for domain in read_domains(uri)}
    for domain in missing:
        if domain.name in running:
            unread.append(Finding.of_guest(Kind.UNREAD, domain, reason))
        else:
            LOG.warning("Guest %s ended during the audit.", printable(domain.name))


def _allocated(
    conf: cfg.ConfigOpts,
    name: str,
    domains: Iterable[Domain],
    unread: list[Finding],
    *,
    embedded: bool,
) -> HostShares | None:
    try:
        with (
            connect(conf, embedded=embedded) as client,
            _errors_as_findings(unread, "Placement"),
        ):
            shares = read_shares(client, name)
            uuids = [domain.uuid for domain in domains if shares.capacity is not None]
            absent = [uuid for uuid in uuids if uuid and uuid not in shares.held]
            return replace(shares, elsewhere=held_elsewhere(client, absent))
    except PlacementMisconfigured as error:
        LOG.warning("The audit leaves out Placement: %s", str(error).partition(";")[0])
    return None


def _measure(
    interval: float, cgroups: HostCgroups | None, unread: list[Finding]
) -> Measurement | None:
    if not interval or cgroups is None or not cgroups.guests:
        return None
    with _errors_as_findings(unread, "CPU time"):
        measured = measure(cgroups, interval)
        unread += _unread(measured.faults)
        if measured.spent or all(guest.stopped for guest in cgroups.guests.values()):
            return measured
        reason = "this kernel does not report how long threads waited (/proc/PID/schedstat)"
        unread.append(Finding(kind=Kind.UNREAD, where="CPU time", found=reason))
    return None


def _unread(faults: Iterable[Fault]) -> Iterator[Finding]:
    for fault in faults:
        text = f"{fault.given}; {fault.allowed}"
        yield Finding(kind=Kind.UNREAD, where=fault.where, found=text)
