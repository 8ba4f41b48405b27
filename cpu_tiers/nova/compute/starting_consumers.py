"""The consumers of a starting host, read before anything of the host's report is edited.

A reshape needs the allocations of all consumers from Placement, and the flavors of the consumers
from Nova's database. Where Placement or the database does not answer, Nova's own inventories must
be reported all the same (decision D85).
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.accounting.missing_shares import Shortfall
from cpu_tiers.nova.compute.host_report import HostReport
from cpu_tiers.nova.compute.report_decision import ReportDecision
from cpu_tiers.nova.compute.shares_inventory import find_missing_shares
from cpu_tiers.nova.compute.start_refusal import MoveRefused
from cpu_tiers.nova.no_answer import NO_ANSWER, NO_DATABASE

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingConsumers:
    """The consumers of a host that a reshape may change.

    :param allocations: of all consumers of the host, in Nova's shape.
    :param missing_shares: the shares that consumers lack, by the uuid of the provider.
    """

    allocations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    missing_shares: Mapping[ProviderId, tuple[Shortfall, ...]] = field(default_factory=dict)


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
        missing = find_missing_shares(host, allocations) if decision.shares else {}
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
    """Refuse the start if Nova's database does not answer in the midst of a reshape.

    :raises MoveRefused: the database does not answer. Other refusals pass unchanged.
    """
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
