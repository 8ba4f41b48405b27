"""The decision whether a host reports its NUMA nodes and shares.

The decision is made anew in each run of Nova's resource tracker, from nova.conf and from the
inventories of the host in Placement. Reporting cannot be turned off while Placement has
inventories of the NUMA nodes or of shares. For a host with servers, reporting can be turned on
only at a start of nova-compute, because Nova reshapes only at a start. Where Placement or Nova's
database does not answer, Nova's own inventories must be reported all the same (decision D85).
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from oslo_log import log as logging

from cpu_tiers.accounting.missing_shares import Shortfall
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.compute import shares_inventory
from cpu_tiers.nova.compute.host_report import Allocations, HostReport
from cpu_tiers.nova.compute.start_refusal import MoveRefused, ReportRefused
from cpu_tiers.nova.no_answer import NO_ANSWER, NO_DATABASE
from cpu_tiers.nova.options import CONF

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDecision:
    """The parts of the report of a host, in one run of the resource tracker.

    :param nodes: report CPUs and memory on NUMA nodes.
    :param no_numa: report that servers with a NUMA topology must stay away.
    :param shares: report VCPU_SHARES beside VCPU.
    :param kept_shares: records of VCPU_SHARES, by the uuid of the provider, that are reported
        again though ``shares`` is off, because they must not vanish.
    """

    nodes: bool
    no_numa: bool
    shares: bool = False
    kept_shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def decide(host: HostReport) -> ReportDecision:
    """Return the parts of the report in this run, before the tree is edited.

    :raises ReportRefused: nova-compute is starting, and reporting was turned off that must stay
        on; or two options contradict each other.
    """
    option: bool | None = CONF.compute.enable_numa_reporting_to_placement
    nodes = _reports_nodes(host, option)
    if nodes and CONF.libvirt.file_backed_memory:
        raise ReportRefused(
            "[libvirt] file_backed_memory is set, and file-backed memory belongs to no NUMA"
            " node: unset it, or unset [compute] enable_numa_reporting_to_placement"
        )
    no_numa = option is False and not nodes
    if CONF.libvirt.report_vcpu_shares:
        return ReportDecision(nodes=nodes, no_numa=no_numa, shares=_may_report_shares(host))
    kept = shares_inventory.shares_to_keep(host)
    return ReportDecision(nodes=nodes, no_numa=no_numa, kept_shares=kept)


def _reports_nodes(host: HostReport, option: bool | None) -> bool:
    """Tell whether the host reports NUMA nodes, without their modules if there are none."""
    if not option and not host.nodes:
        return False
    from cpu_tiers.nova.compute.numa.numa_inventory import reports_nodes

    return reports_nodes(host, option)


def _may_report_shares(host: HostReport) -> bool:
    """Tell whether the host can report shares in this run.

    Nova reshapes only at a start of nova-compute. Where Placement was away at that time and
    servers lack shares, the host reports no shares until the next start.
    """
    if host.is_starting or shares_inventory.has_shares(host):
        return True
    try:
        if not shares_inventory.find_missing_shares(host, host.read_allocations()):
            return True
    except (*NO_ANSWER, *NO_DATABASE) as error:
        # An exception would keep Nova's own inventories from being reported, too.
        LOG.error("%s reports no %s in this run: %r", host.name, VCPU_SHARES, error)
        return False
    LOG.error(
        "%s reports %s after a restart of nova-compute: its servers lack shares, and get them"
        " only at a start",
        host.name,
        VCPU_SHARES,
    )
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingConsumers:
    """The consumers of a host that a reshape may change."""

    allocations: Allocations = field(default_factory=dict)
    missing_shares: tuple[Shortfall, ...] = ()


def read_consumers(host: HostReport, decision: ReportDecision) -> StartingConsumers | None:
    """Return the consumers that a reshape may change; ``None`` if they are unknown.

    Without the answer of Placement or of Nova's database, the host reports in this run as it does
    while nova-compute runs: an exception would keep Nova's own inventories from being reported.

    :returns: no consumers, if no reshape is possible in this run.
    """
    is_first_call = host.is_starting and host.allocations is None
    if not is_first_call or not (decision.shares or decision.nodes):
        return StartingConsumers()
    try:
        allocations = host.read_allocations()
        missing = (
            shares_inventory.find_missing_shares(host, allocations) if decision.shares else ()
        )
    except (*NO_ANSWER, *NO_DATABASE) as error:
        LOG.error(
            "Whether servers on %s need a reshape is not known: %r. nova-compute must be"
            " restarted if they do",
            host.name,
            error,
        )
        return None
    return StartingConsumers(allocations=allocations, missing_shares=missing)


@contextlib.contextmanager
def refusing_unknown_servers(host: HostReport) -> Iterator[None]:
    """Raise MoveRefused if Nova's database does not answer in the midst of a reshape."""
    try:
        yield
    except MoveRefused:
        raise
    except NO_DATABASE as error:
        # Without the traceback in nova-conductor, which RemoteError has in its next lines.
        reason = (str(error) or repr(error)).partition("\n")[0]
        raise MoveRefused(
            error=f"Nova's database does not tell the servers on {host.name} ({reason}). Nothing"
            " was changed; start nova-compute again when nova-conductor and the database answer"
        ) from error
