"""``cpu-tiers-status upgrade check``: checks to make before an upgrade.

The program uses oslo.upgradecheck, as ``nova-status`` does, with the same exit statuses:
0 if all checks succeed, 1 if a check has a warning, 2 if a check is impossible.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from socket import gethostname
from typing import Any, cast

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands
from oslo_upgradecheck.upgradecheck import main as run_checks

from cpu_tiers.conf import filter_scheduler, read, weight_classes
from cpu_tiers.conf.read import DATABASE_OPTIONS, PROVIDER_FILE_OPTIONS, config_files
from cpu_tiers.conf.weigher import idle_names
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.cloud.upgrade_checks import (
    check_capacity,
    check_host_traits,
    check_numa,
    check_provider_files,
    check_shares,
    check_step,
    check_uncounted_nodes,
    check_weigher,
    register,
    step_of,
)
from cpu_tiers.tools.frame.app import hide, hide_url, masked_output
from cpu_tiers.tools.frame.host_files import read_host_files
from cpu_tiers.tools.frame.ladder_options import has_driver
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.nova.nova_command import quiet, require_nova
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.inventories import HostSurvey, read_excesses, read_shares, survey
from cpu_tiers.tools.placement.session import connect
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.translators.broken_rules import FlavorFinding, Inspection, Move


def inspect(
    files: Sequence[str], folders: Sequence[str]
) -> tuple[Inspection, Sequence[Inspection]]:
    """Return an inspection of the API database, and of each cell v2.

    :param files, folders: the configuration of Nova.
    :raises NovaMissing: Nova is not installed beside cpu-tiers.
    :raises NovaUnavailable: the API database does not answer.
    """
    require_nova("cpu-tiers-status upgrade check of flavors")
    with quiet():
        # As in nova_command.py: warnings are recorded, because eventlet puts filters of its
        # own first.
        with warnings.catch_warnings(record=True):
            from cpu_tiers.nova.options import CONF
            from cpu_tiers.tools.nova import stored_flavors
        hide(CONF)
        with (
            ProgressLine("reading flavors and servers") as progress,
            stored_flavors.databases(files, folders),
        ):
            flavors = stored_flavors.inspect_flavors(progress.tell)
            return flavors, list(stored_flavors.inspect_cells(progress.tell))


def check_flavors(flavors: Inspection, cells: Sequence[Inspection]) -> Result:
    """Warn about every flavor and server that breaks rules.

    A cell without an answer is a failure, and is named first.
    """
    errors = [cell.error for cell in cells if cell.error]
    findings = [*flavors.findings, *(finding for cell in cells for finding in cell.findings)]
    if not findings and not errors:
        return Result(Code.SUCCESS)
    servers = sum(len(finding.servers) for cell in cells for finding in cell.findings)
    lines = [
        *errors,
        f"{len(flavors.findings)} of {flavors.count} flavors and {servers} of"
        f" {sum(cell.count for cell in cells)} servers break rules of cpu-tiers",
        *map(_line, findings),
    ]
    return Result(Code.FAILURE if errors else Code.WARNING, ".\n".join(lines))


def check_pinned(hosts: Sequence[HostSurvey], cells: Sequence[Inspection]) -> Iterator[str]:
    """Warn about hosts that have pinned servers and report no PCPU."""
    pinned = sum((Counter(cell.pinned) for cell in cells), Counter[str]())
    without_pcpu = [
        f"{host.name} ({pinned[host.name]})"
        for host in hosts
        if pinned[host.name] and not host.has_pcpu
    ]
    if without_pcpu:
        yield (
            "hosts without [compute] cpu_dedicated_set have servers with dedicated CPUs:"
            f" {', '.join(without_pcpu)}. The servers hold VCPU, beside servers that float over"
            " the same CPUs, and with [compute] enable_numa_reporting_to_placement find such hosts"
            " only while [workarounds] disable_fallback_pcpu_query of nova-scheduler is false."
            " Before you report the NUMA nodes of these hosts, move the servers away and set"
            " cpu_dedicated_set"
        )


def _line(finding: FlavorFinding) -> str:
    faults = "; ".join(map(str, finding.rules.faults))
    if not finding.servers:
        options = " or ".join(f"{option} = true" for option in finding.rules.refused_by)
        return f"{faults}: no server can be created or resized with the flavor with {options}"
    outcomes = [
        f"with {option} = true, {_outcome(move)}" for option, move in finding.rules.moves.items()
    ]
    outcome = "; ".join(outcomes) or "the servers are moved as before"
    return f"{faults}: {outcome}: {', '.join(finding.servers)}"


def _outcome(move: Move | None) -> str:
    if move is None:
        return "the servers cannot be moved, evacuated or unshelved"
    if move.by_stored_cpus:
        return "the servers are moved with the CPUs and NUMA nodes that Nova has stored for them"
    if move.shares is None:
        return "the servers are moved all the same"
    return f"the servers are moved, and each claims {move.shares or 'no'} {VCPU_SHARES}"


def check_functions() -> Iterator[str]:
    """Warn about features of cpu-tiers that do not fit the installed Nova, on or off.

    :raises NovaMissing: Nova is not installed beside cpu-tiers.
    """
    require_nova("cpu-tiers-status upgrade check of functions")
    with quiet(), warnings.catch_warnings(record=True):  # as in nova_command.py
        from cpu_tiers.nova.api.features import API
        from cpu_tiers.nova.compute.features import COMPUTE
        from cpu_tiers.nova.scheduler.features import SCHEDULER

        features: dict[str, list[str]] = {}
        for service in (API, SCHEDULER, COMPUTE):
            for feature in service.features:
                if refusal := feature.refusal():
                    names = features.setdefault(refusal, [])
                    names.append(f"{feature.name} of {service.name}")
    for refusal, names in features.items():
        yield f"{refusal}. Features: {', '.join(names)}"


Answer = Result | Iterable[str]
"""The result of a check, or the texts of its warnings."""


def _run(check: Callable[["Checks"], Answer]) -> Callable[["Checks"], Result]:
    """Return a check for oslo.upgradecheck, which fails with the message of an error."""

    def run_check(checks: "Checks") -> Result:
        try:
            answer = check(checks)
            if isinstance(answer, Result):
                return answer
            texts = list(answer)
        except (CpuTiersError, cfg.Error, ValueError) as error:
            return Result(Code.FAILURE, str(error))
        return Result(Code.WARNING, ".\n".join(texts)) if texts else Result(Code.SUCCESS)

    return run_check


class Checks(UpgradeCommands):
    """The checks of the Placement service and of the databases that nova.conf names."""

    display_title = "cpu-tiers upgrade check results"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Keep the configuration; oslo.upgradecheck reads its files before the first check."""
        super().__init__()
        register(conf)
        # Of Nova, which may not be installed here.
        conf.register_opt(weight_classes.OPTION, filter_scheduler.GROUP)
        of_databases = (*DATABASE_OPTIONS, (read.GROUP, read.OPTIONS))
        for group, options in (*PROVIDER_FILE_OPTIONS, *of_databases):
            conf.register_opts(options, group=group)
        self._conf = conf
        self._answers: dict[str, Any] = {}

    def _once(self, name: str, ask: Callable[[], Any]) -> Any:
        """Return an answer that several checks need, or raise its error; ask only once."""
        if name not in self._answers:
            try:
                self._answers[name] = ask()
            except CpuTiersError as error:
                self._answers[name] = error
        if isinstance(self._answers[name], CpuTiersError):
            raise self._answers[name]
        return self._answers[name]

    @contextmanager
    def _placement(self) -> Iterator[PlacementClient]:
        """Yield a client of Placement, or of what Placement's database has."""
        if self._conf.cpu_tiers.read_databases:
            yield self._once("placement", self._read_database)
            return
        with connect(self._conf) as client:
            yield client

    def _read_database(self) -> PlacementClient:
        from cpu_tiers.tools.database.databases import Databases

        databases = Databases(self._conf, hide_url)
        try:
            return SnapshotClient(databases.placement)
        finally:
            databases.close()

    def _hosts(self) -> Sequence[HostSurvey]:
        def ask() -> Sequence[HostSurvey]:
            with ProgressLine("reading hosts") as progress, self._placement() as client:
                return survey(client, partial(progress.tell_number, "providers"))

        return cast("Sequence[HostSurvey]", self._once("hosts", ask))

    def _step(self) -> Step:
        return step_of(self._hosts(), self._conf)

    def _shares(self) -> Iterable[str]:
        yield from check_shares(self._hosts(), self._step())
        names = [host.name for host in self._hosts()]
        machine = gethostname()
        # libvirt, and thus Nova, may take the name of a machine with its domain.
        here = next((name for name in names if machine in (name, name.split(".")[0])), None)
        files = read_host_files(self._conf, here or machine)
        needs_file, held = has_driver(self._conf) is False, 0
        if here and needs_file:
            with self._placement() as client:
                held = sum(read_shares(client, here).held.values())
        yield from check_provider_files(files, held, needs_file=needs_file)

    def _databases(self) -> tuple[Inspection, Sequence[Inspection]]:
        files, folders = self._conf.config_file or [], self._conf.config_dir or []
        databases = self._once("databases", lambda: inspect(files, folders))
        return cast("tuple[Inspection, Sequence[Inspection]]", databases)

    def _capacity(self) -> Iterable[str]:
        self._hosts()  # a Placement that does not answer is not asked again
        with ProgressLine("reading usages") as progress, self._placement() as client:
            tell = partial(progress.tell_number, "providers")
            return check_capacity(read_excesses(client, tell))

    def _weigher(self) -> Iterable[str]:
        options = self._conf[filter_scheduler.GROUP]
        unloaded = list(check_weigher(self._conf))
        if unloaded or not (
            options.resource_provider_resources or options.resource_provider_traits
        ):
            return unloaded
        self._hosts()
        with self._placement() as client:
            has_class = client.has_resource_class
            idle = idle_names(options, has_class, client.traits_in_use().__contains__)
        return ["\n".join(idle)] if idle else []

    def _pinned(self) -> Iterable[str]:
        _, cells = self._databases()
        return check_pinned(self._hosts(), cells)

    def _nodes(self) -> Iterable[str]:
        flavors, _ = self._databases()
        return check_uncounted_nodes(self._hosts(), flavors.selling_nodes, self._conf)

    _upgrade_checks = (
        ("Step of the cloud", _run(lambda self: check_step(self._hosts(), self._conf))),
        ("Functions of Nova", _run(lambda _: check_functions())),
        ("NUMA reporting", _run(lambda self: check_numa(self._hosts(), self._step()))),
        ("VCPU_SHARES reporting", _run(_shares)),
        ("Traits of hosts", _run(lambda self: check_host_traits(self._hosts(), self._conf))),
        ("Capacity of providers", _run(_capacity)),
        ("Weigher of nova-scheduler", _run(_weigher)),
        ("Flavors and servers", _run(lambda self: check_flavors(*self._databases()))),
        ("Tiers on NUMA nodes", _run(_nodes)),
        ("Servers with dedicated CPUs", _run(_pinned)),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check`` and return its exit status."""
    conf = cfg.ConfigOpts()
    with masked_output():
        hide(conf)
        arguments = list(sys.argv[1:] if argv is None else argv)
        # Of nova-compute, too: its own file may have compute_driver.
        return run_checks(conf, "nova", Checks(conf), arguments, config_files([]))
