"""Gathering the evidence of an audit from libvirt, the kernel and Placement."""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from oslo_config import cfg

from cpu_tiers.cgroup.host import read_host
from cpu_tiers.cli.occupancy_arguments import host_inventories
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.guest.audit import Allocated, Evidence, Finding, Kind, due_weight
from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.inventory import Host
from cpu_tiers.inventory.cpus import check_cpu_sets, shared_cpus
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.libvirt.connection import read_capabilities, read_domains, read_hostname
from cpu_tiers.libvirt.domain_parser import parse_domain
from cpu_tiers.libvirt.statistics import measure
from cpu_tiers.model.cgroup import DEFAULT_WEIGHT, HostCgroups
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.cpu_time import CpuTimes
from cpu_tiers.model.domain import Domain
from cpu_tiers.placement.errors import PlacementMisconfigured
from cpu_tiers.placement.session import connect
from cpu_tiers.placement.shares import read_shares

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSources:
    """Where to gather the evidence.

    :param uri: the connection URI of libvirt.
    :param embedded: use an empty Placement inside the process instead of nova.conf's.
    :param hostname: the name of the host's provider; ``None`` for the host name that
        libvirt returns, which is the name that Nova uses.
    :param interval: seconds to measure CPU time; 0 to measure nothing.
    """

    uri: str
    conf: cfg.ConfigOpts
    embedded: bool
    hostname: str | None
    interval: float


@dataclass(slots=True)
class GatheredEvidence:
    """The evidence, and a finding for each source that could not be read."""

    hostname: str
    evidence: Evidence
    unread: list[Finding] = field(default_factory=list)


def gather(sources: EvidenceSources) -> GatheredEvidence:
    """Return the evidence; a source that cannot be read is left out and becomes a finding.

    :raises InvalidInput: nova.conf does not fit the host.
    :raises LibvirtUnavailable: libvirt does not list the guests.
    """
    unread: list[Finding] = []
    options = inventory_options(sources.conf)
    name = sources.hostname or read_hostname(sources.uri)
    capabilities = read_capabilities(sources.uri)
    host = Host(name=name, topology=parse_capabilities(capabilities, where=sources.uri))
    check_cpu_sets(host, options)
    domains = list(_domains(sources.uri, unread))
    cgroups = _cgroups(sources.uri, domains, unread)
    allocated = _allocated(sources, name, unread)
    spent, seconds = _measure(sources, domains, unread)
    default = DEFAULT_WEIGHT[cgroups.version if cgroups else 2]
    occupancy = Occupancy(
        domains=tuple(replace(domain, weight=due_weight(domain) or default) for domain in domains),
        cpus=host.topology.cpus,
        shared_cpus=shared_cpus(host, options),
        default_weight=default,
        services={},
        inventories=host_inventories(host, options),
    )
    # Without both options, dedicated vCPUs may be pinned to any CPU of the host.
    has_no_sets = options.cpu_shared_set is None and options.cpu_dedicated_set is None
    dedicated = host.topology.cpus if has_no_sets else options.cpu_dedicated_set
    evidence = Evidence(
        host=occupancy,
        dedicated_cpus=dedicated or CpuSet(),
        cgroups=cgroups,
        allocated=allocated,
        spent=spent,
        seconds=seconds,
    )
    return GatheredEvidence(hostname=name, evidence=evidence, unread=unread)


@contextmanager
def _errors_as_findings(unread: list[Finding], where: str) -> Iterator[None]:
    """Turn an error into findings, so that the audit continues without this source."""
    try:
        yield
    except InvalidInput as error:
        unread += (
            Finding(kind=Kind.UNREAD, where=fault.where, found=f"{fault.given}; {fault.allowed}")
            for fault in error.faults
        )
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
        cgroups = read_host({domain.uuid for domain in domains if domain.uuid})
        unread += (
            Finding(kind=Kind.UNREAD, where=fault.where, found=f"{fault.given}; {fault.allowed}")
            for fault in cgroups.faults
        )
        missing = [domain for domain in domains if domain.uuid not in cgroups.guests]
        if missing and not cgroups.faults:
            _explain(uri, missing, unread)
    return cgroups


def _explain(uri: str, missing: list[Domain], unread: list[Finding]) -> None:
    """Add a finding for each running guest without a visible process.

    A guest that has ended since libvirt listed it is only logged.
    """
    running = {domain.name for domain in read_domains(uri)}
    for domain in missing:
        if domain.name not in running:
            LOG.warning("Guest %s ended during the audit.", printable(domain.name))
            continue
        reason = (
            "no visible QEMU process has the uuid of the guest; run the audit as root on the"
            " compute host"
        )
        where = f"guest {domain.name}"
        unread.append(Finding(kind=Kind.UNREAD, where=where, found=reason, uuid=domain.uuid))


def _allocated(sources: EvidenceSources, name: str, unread: list[Finding]) -> Allocated | None:
    try:
        with (
            connect(sources.conf, embedded=sources.embedded) as client,
            _errors_as_findings(unread, "Placement"),
        ):
            shares = read_shares(client, name)
            return Allocated(capacity=shares.capacity, shares=shares.held)
    except PlacementMisconfigured as error:
        LOG.warning("The audit leaves out Placement: %s", str(error).partition(";")[0])
    return None


def _measure(
    sources: EvidenceSources, domains: Collection[Domain], unread: list[Finding]
) -> tuple[CpuTimes, float]:
    """Return the CPU time of each guest in the interval, and the length of the interval."""
    if not sources.interval or not domains:
        return {}, 0.0
    with _errors_as_findings(unread, "CPU time"):
        spent, seconds = measure(sources.uri, sources.interval)
        if spent:
            return spent, seconds
        reason = "this libvirt does not report how long vCPUs waited; upgrade libvirt"
        unread.append(Finding(kind=Kind.UNREAD, where="CPU time", found=reason))
    return {}, 0.0
