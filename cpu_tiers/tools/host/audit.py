"""``cpu-tiers host audit``: compares promised and delivered CPU on a compute host."""

import logging
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from textwrap import fill
from typing import NamedTuple

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.tools.cgroup.host import read_host
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.host_arguments import add_local_libvirt_argument, check_local
from cpu_tiers.tools.frame.metrics import Metrics, single, write_metrics_file
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.numbers import seconds_from
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers, tier_names
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.host.audit_evidence import gather
from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.host.checks.delivery import deliveries
from cpu_tiers.tools.host.checks.due import evidence_dues
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.host.host_show import add_picture_arguments, draw
from cpu_tiers.tools.libvirt.connection import set_weights
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.tier import Tier

LOG = logging.getLogger(__name__)

COLUMNS = ("kind", "where", "uuid", "found", "means", "do", "fixed")

_COLUMN_WIDTH = 40


class _Audited(NamedTuple):
    hostname: str
    evidence: Evidence
    findings: list[Finding]


class HostAudit(NovaConfCommand, ListCommand):
    """Compare the promised CPU of guests with the CPU that guests get from a compute host.

    Exit status: 0 without findings, 3 with findings (a source that cannot be read is a
    finding), 1 if the audit was impossible, 2 for wrong usage.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_local_libvirt_argument(parser)
        parser.add_argument(
            "--hostname",
            metavar="NAME",
            help="name of the host's resource provider (default: the host name that libvirt "
            "returns, which Nova uses)",
        )
        parser.add_argument(
            "--interval",
            type=seconds_from(0),
            default=10.0,
            metavar="SECONDS",
            help="how long to measure the CPU time of guests; 0 measures nothing (default: 10)",
        )
        parser.add_argument(
            "--ignore",
            action="append",
            choices=[kind.value for kind in Kind],
            default=[],
            metavar="KIND",
            help="leave out findings of this kind; may be repeated. Without short, findings of "
            "the kind busy are left out, too. Kinds: %(choices)s",
        )
        parser.add_argument(
            "--fix",
            action="store_true",
            help="set wrong weights through libvirt; nothing else is changed",
        )
        parser.add_argument(
            "--prometheus",
            metavar="FILE.prom",
            help="write metrics to this file, for the textfile collector of node_exporter",
        )
        add_picture_arguments(parser)
        add_tier_argument(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        check_local(parsed_args.connect)
        tiers, conf = read_tiers(parsed_args), self.nova_compute_conf()
        hostname, evidence, findings = before = self._audited(parsed_args, conf)
        open_ = findings
        if parsed_args.fix and _fix(parsed_args.connect, evidence, findings):
            # What is left is what a second look finds: a right weight ends other findings, too.
            hostname, evidence, open_ = self._audited(parsed_args, conf)
        left = {(finding.kind, finding.where) for finding in open_}
        was = {(finding.kind, finding.where) for finding in before.findings}
        findings = [*findings, *(f for f in open_ if (f.kind, f.where) not in was)]
        self.status = FOUND if open_ else 0
        if parsed_args.prometheus is not None:
            write_metrics(parsed_args.prometheus, evidence, open_, tiers)
        draw(parsed_args, hostname, evidence.host, tiers, deliveries(evidence))
        LOG.info(
            "%s: guests: %d, guests measured for %.1f s: %d, findings: %d",
            *(hostname, len(evidence.host.domains)),
            *(evidence.seconds, len(evidence.spent), len(findings)),
        )
        return COLUMNS, [
            _row(finding, evidence.step, (finding.kind, finding.where) not in left)
            for finding in findings
        ]

    def _audited(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> _Audited:
        """Return the host, and the findings that are not ignored."""
        seconds = parsed_args.interval
        with ProgressLine(f"reading the host, and measuring for {seconds:g} seconds"):
            hostname, evidence, unread = gather(
                parsed_args.connect,
                conf,
                embedded=self.wants_embedded,
                hostname=parsed_args.hostname,
                interval=seconds,
            )
        ignored = set(map(Kind, parsed_args.ignore))
        if Kind.SHORT in ignored:
            ignored.add(Kind.BUSY)  # its cause
        findings = [
            finding for finding in (*audit(evidence), *unread) if finding.kind not in ignored
        ]
        return _Audited(hostname, evidence, findings)


def _fix(uri: str, evidence: Evidence, findings: Iterable[Finding]) -> set[str]:
    """Set wrong weights, and return the uuids of the guests whose weights are right now."""
    weights = {
        finding.uuid: finding.weight
        for finding in findings
        if finding.kind is Kind.WEIGHT and finding.uuid and finding.weight is not None
    }
    guests = [domain for domain in evidence.host.domains if domain.uuid in weights]
    for domain in guests:
        if reason := _refusal(evidence, domain):
            weights.pop(domain.uuid or "")
            LOG.error("The weight of guest %s is not set: %s", domain.uuid, printable(reason))
    if not weights:
        return set()
    try:
        for uuid, reason in set_weights(uri, weights).items():
            LOG.error("The weight of guest %s is not set: %s", uuid, printable(reason))
        # Read the cgroups again: "fixed" is what the kernel has, not what libvirt was told.
        cgroups = read_host(guests).guests
    except CpuTiersError as error:
        LOG.error("Not all weights are set: %s", error)
        return set()
    return {uuid for uuid, cgroup in cgroups.items() if cgroup.weight == weights.get(uuid)}


def _refusal(evidence: Evidence, domain: Domain) -> str | None:
    cgroup = evidence.cgroup(domain)
    if cgroup is None or evidence.cgroups is None:
        return None
    if cgroup.path in evidence.cgroups.idle:
        return (
            f"cgroup {cgroup.path} has cpu.idle 1, with which the kernel refuses every weight;"
            " write 0 to its file cpu.idle, then run the audit with --fix again"
        )
    if cgroup.stopped:
        return f"its QEMU process {cgroup.pid} is stopped; continue it with kill -CONT"
    return None


def _row(finding: Finding, step: Step, fixed: bool) -> tuple[object, ...]:
    texts = (finding.where, finding.found, finding.kind.means, finding.remedy(step))
    where, found, means, do = (
        FormattedValue(printable(text), partial(fill, width=_COLUMN_WIDTH)) for text in texts
    )
    return finding.kind.value, where, finding.uuid, found, means, do, fixed


_GUEST = {
    "guest_weight": "CPU weight that the guest must have",
    "guest_cgroup_weight": "CPU weight of the guest's cgroup",
    "guest_floor_cpus": "CPUs of the busy guest wherever the kernel has put the vCPUs",
    "guest_entitlement_cpus": "CPUs of the guest while all vCPUs of all guests run",
    "guest_wanted_cpus": "CPUs that the guest ran on or waited for in the interval",
    "guest_due_cpus": "CPUs that were due to the guest while it wanted to run",
    "guest_delivered_cpus": "CPUs that the guest ran on in the interval",
    "guest_missing_cpus": "CPUs that were due and that the guest did not get",
    "guest_sold_cpus": "CPUs that the shares of the guest are sold as",
}
"""Names and help texts of the gauges with the labels guest, uuid and tier."""


def write_metrics(
    path: str, evidence: Evidence, findings: Collection[Finding], tiers: Collection[Tier]
) -> None:
    """Write the measured values, and the number of open findings of each kind.

    :raises InvalidInput: the file cannot be written.
    """
    write_metrics_file(path, _metrics(evidence, findings, tiers))


def _metrics(
    evidence: Evidence, findings: Collection[Finding], tiers: Collection[Tier]
) -> Iterator[Metrics]:
    kinds = Counter(finding.kind for finding in findings)
    numbers = [((kind.value,), kinds[kind]) for kind in Kind]
    yield Metrics("audit_findings", "Number of open findings", numbers, ["kind"])
    yield single("audit_interval_seconds", "Length of the measurement", evidence.seconds)
    yield single("audit_timestamp_seconds", "Time of the end of the audit", time.time())
    names, values = tier_names(evidence.host.domains, tiers), _values(evidence)
    for name, text in _GUEST.items():
        samples = [
            ((domain.name, domain.uuid or "", names[domain.name] or ""), value)
            for domain in evidence.host.domains
            if (value := values[domain.name].get(name)) is not None
        ]
        yield Metrics(name, text, samples, ["guest", "uuid", "tier"])


def _values(evidence: Evidence) -> Mapping[str, Mapping[str, float | None]]:
    """Return the values of the gauges in ``_GUEST`` by guest; ``None`` if not measured."""
    entitlements, delivered = evidence.host.figures(), deliveries(evidence)
    cgroups = evidence.cgroups.guests if evidence.cgroups else {}
    dues, values = evidence_dues(evidence), {}
    for domain in evidence.host.domains:
        cgroup, delivery = cgroups.get(domain.uuid or ""), delivered.get(domain.name)
        keys = ("wanted", "due", "delivered", "missing")
        measured = [getattr(delivery, key, None) for key in keys]
        weights = (evidence.host.weight(domain), cgroup.weight if cgroup else None)
        entitled = entitlements[domain.name]
        sold = float(dues[domain.name].sold)
        row = (*weights, float(entitled.floor), float(entitled.entitlement), *measured, sold)
        values[domain.name] = dict(zip(_GUEST, row, strict=True))
    return values
