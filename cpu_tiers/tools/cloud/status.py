"""``cpu-tiers-status upgrade check``: checks to make before an upgrade.

The program uses oslo.upgradecheck, as ``nova-status`` does, with the same exit statuses:
0 if all checks succeed, 1 if a check has a warning, 2 if a check is impossible.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands
from oslo_upgradecheck.upgradecheck import main as run

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.conf.score_names import idle_names
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.excess import Excess
from cpu_tiers.model.host_traits import multiplier_trait
from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES
from cpu_tiers.tools.cloud.flavor_report import check_flavors, check_pinned, inspect
from cpu_tiers.tools.cloud.function_report import check_functions
from cpu_tiers.tools.cloud.trait_report import check_host_traits, register
from cpu_tiers.tools.frame.host_names import names, of_all
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.frame.secrets import hide, masked_output
from cpu_tiers.tools.frame.terminal import wrapped_errors
from cpu_tiers.tools.placement.excesses import read_excesses
from cpu_tiers.tools.placement.session import connect
from cpu_tiers.tools.placement.survey import HostSurvey, survey

if TYPE_CHECKING:
    from cpu_tiers.tools.nova.flavor_findings import Inspection

_OF_THE_WEIGHER = (
    "query_placement_for_vcpu_shares",
    "query_placement_for_numa",
    "require_host_traits",
)
"""The options of ``[filter_scheduler]`` that only a loaded weigher reads."""

_Databases = tuple["Inspection", Sequence["Inspection"]]
"""The API database, and the cells v2."""


class Checks(UpgradeCommands):
    """The checks of the Placement service and of the databases that nova.conf names."""

    display_title = "cpu-tiers upgrade check results"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Keep the configuration; oslo.upgradecheck reads its files before the first check."""
        super().__init__()
        register(conf)
        # Of Nova, which may not be installed here.
        conf.register_opt(cfg.ListOpt("weight_classes", default=[]), filter_scheduler.GROUP)
        self._conf = conf
        self._reports: tuple[HostSurvey, ...] | CpuTiersError | None = None
        self._databases: _Databases | CpuTiersError | None = None

    def _on_hosts(self, check: Callable[[Sequence[HostSurvey]], Result]) -> Result:
        # Several checks need all hosts, so Placement is asked only once.
        if self._reports is None:
            self._reports = self._survey()
        if isinstance(self._reports, CpuTiersError):
            return Result(Code.FAILURE, str(self._reports))
        return check(self._reports)

    def _survey(self) -> tuple[HostSurvey, ...] | CpuTiersError:
        try:
            with ProgressLine("reading hosts") as progress, connect(self._conf) as client:
                return survey(client, partial(progress.tell_number, "providers"))
        except CpuTiersError as error:
            return error

    def _numa(self) -> Result:
        return self._on_hosts(check_numa)

    def _shares(self) -> Result:
        return self._on_hosts(check_shares)

    def _share_names(self) -> Result:
        return self._on_hosts(self._check_share_names)

    def _check_share_names(self, hosts: Sequence[HostSurvey]) -> Result:
        try:
            with connect(self._conf) as client:
                return check_share_names(hosts, client.has_resource_class("VCPU_SHARES"))
        except CpuTiersError as error:
            return Result(Code.FAILURE, str(error))

    def _traits(self) -> Result:
        return self._on_hosts(lambda hosts: check_host_traits(hosts, self._conf))

    def _capacity(self) -> Result:
        return self._on_hosts(lambda _: self._check_capacity())

    def _check_capacity(self) -> Result:
        try:
            with ProgressLine("reading usages") as progress, connect(self._conf) as client:
                tell = partial(progress.tell_number, "providers")
                return check_capacity(read_excesses(client, tell))
        except CpuTiersError as error:
            return Result(Code.FAILURE, str(error))

    def _weigher(self) -> Result:
        result = check_weigher(self._conf)
        options = self._conf[filter_scheduler.GROUP]
        if result.code == Code.SUCCESS and (
            options.resource_provider_resources or options.resource_provider_traits
        ):
            return self._on_hosts(lambda _: self._check_names(options))
        return result

    def _check_names(self, options: cfg.ConfigOpts.GroupAttr) -> Result:
        try:
            with connect(self._conf) as client:

                def has_class(name: str) -> bool:
                    names = {name, OTHER_SHARES} if name == VCPU_SHARES else {name}
                    return any(map(client.has_resource_class, names))

                has_trait = client.traits_in_use().__contains__
                idle = idle_names(options, has_class, has_trait)
        except CpuTiersError as error:
            return Result(Code.FAILURE, str(error))
        return Result(Code.WARNING, "\n".join(idle)) if idle else Result(Code.SUCCESS)

    def _step(self) -> Result:
        return self._on_hosts(lambda hosts: check_step(hosts, self._conf))

    def _on_databases(self, check: Callable[[_Databases], Result]) -> Result:
        if self._databases is None:
            self._databases = self._inspect()
        if isinstance(self._databases, CpuTiersError):
            return Result(Code.FAILURE, str(self._databases))
        return check(self._databases)

    def _inspect(self) -> _Databases | CpuTiersError:
        try:
            return inspect(self._conf.config_file or [], self._conf.config_dir or [])
        except CpuTiersError as error:
            return error

    def _flavors(self) -> Result:
        return self._on_databases(lambda databases: check_flavors(*databases))

    def _pinned(self) -> Result:
        return self._on_databases(
            lambda databases: self._on_hosts(lambda hosts: check_pinned(hosts, databases[1]))
        )

    _upgrade_checks = (
        ("Step of the cloud", _step),
        ("Functions of Nova", lambda _: check_functions()),
        ("NUMA reporting", _numa),
        ("VCPU_SHARES reporting", _shares),
        ("Name of VCPU_SHARES", _share_names),
        ("Traits of hosts", _traits),
        ("Capacity of providers", _capacity),
        ("Weigher of nova-scheduler", _weigher),
        ("Flavors and servers", _flavors),
        ("Servers with dedicated CPUs", _pinned),
    )


def check_step(hosts: Sequence[HostSurvey], conf: cfg.ConfigOpts) -> Result:
    """Name the step of the ladder (docs/index.rst) on which a cloud stands; never a warning.

    :param conf: the configuration of nova-scheduler.
    """
    weighs = loads_weigher(conf)
    try:
        options = [name for name in _OF_THE_WEIGHER if conf[filter_scheduler.GROUP][name]]
    except (cfg.Error, ValueError) as error:  # oslo.config checks a value when the value is read
        return Result(Code.FAILURE, str(error))
    on = options if weighs else []
    nodes = sum(host.is_numa_aware is True for host in hosts)
    by_driver = sum(host.has_shares and multiplier_trait() in host.functions for host in hosts)
    by_file = sum(host.has_shares for host in hosts) - by_driver
    if nodes or "query_placement_for_numa" in on:
        step = "4, NUMA nodes"
    elif by_driver or on:
        step = "3, the driver and requests of shares"
    elif weighs:
        step = "2, the weigher"
    else:
        step = "1, tiers with Nova's own driver" if by_file else "0, no tiers"
    return Result(
        Code.SUCCESS,
        f"step {step}: of {len(hosts)} hosts, {by_driver} report shares by the driver of"
        f" cpu-tiers, {by_file} by a provider.yaml, and {nodes} report NUMA nodes; nova-scheduler"
        f" {'loads' if weighs else 'does not load'} the weigher",
    )


def loads_weigher(conf: cfg.ConfigOpts) -> bool:
    """Tell whether nova-scheduler loads the weigher of cpu-tiers."""
    classes = conf[filter_scheduler.GROUP].weight_classes
    return any(name.startswith("cpu_tiers.") for name in classes)


def check_numa(hosts: Sequence[HostSurvey]) -> Result:
    """Warn about hosts where the option is not set, or whose report an older cpu-tiers has made.

    Spec: numa-topology-with-rps, "Optionally configured NUMA resources".
    """
    old = [host.name for host in hosts if host.is_numa_aware and not host.tells_nodes]
    if old:
        return Result(
            Code.WARNING,
            f"{of_all(old, hosts)} reported by an older cpu-tiers: start nova-compute on"
            f" {names(old)} before nova-scheduler, which finds these hosts for no server with"
            " NUMA nodes until then, and run cpu-tiers allocation heal",
        )
    undecided = [host.name for host in hosts if host.is_numa_aware is None]
    if not undecided:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"{of_all(undecided, hosts)} undecided: on {names(undecided)}, set [compute]"
        " enable_numa_reporting_to_placement to true (for servers with a NUMA topology) or"
        " false (for servers without) before the default of the option changes",
    )


def check_shares(hosts: Sequence[HostSurvey]) -> Result:
    """Warn if some hosts report shares and other hosts do not.

    A scheduler that requests shares cannot use hosts without shares.
    """
    vcpu_hosts = [host for host in hosts if host.has_vcpu]
    without_shares = [host.name for host in vcpu_hosts if not host.has_shares]
    if not without_shares or len(without_shares) == len(vcpu_hosts):
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"{of_all(without_shares, vcpu_hosts)} without shares: on {names(without_shares)}, set"
        " [libvirt] report_vcpu_shares = true before you set [filter_scheduler]"
        " query_placement_for_vcpu_shares",
    )


def check_share_names(hosts: Sequence[HostSurvey], is_standard: bool) -> Result:
    """Warn if a step of the change from CUSTOM_VCPU_SHARES to VCPU_SHARES is open.

    :param is_standard: whether Placement knows VCPU_SHARES, by its os-resource-classes.
    """
    with_shares = [host for host in hosts if host.has_shares]
    others = [host.name for host in with_shares if host.has_other_name]
    is_standard_here = VCPU_SHARES == "VCPU_SHARES"
    if not with_shares or (is_standard == is_standard_here and not others):
        return Result(Code.SUCCESS)
    if not is_standard:
        text = (
            "os-resource-classes contains VCPU_SHARES here and not beside Placement: upgrade it"
            " beside Placement, and restart Placement, before any nova-compute has it"
        )
    elif not is_standard_here:
        text = (
            "Placement knows VCPU_SHARES, which os-resource-classes does not contain here: upgrade"
            " os-resource-classes beside nova-scheduler before any nova-compute has it"
        )
    else:
        text = (
            f"{of_all(others, with_shares)} with the name {OTHER_SHARES}: for {names(others)}, run"
            " cpu-tiers reshape rename. Until then nova-scheduler sends two queries for a server"
            " with shares"
        )
    return Result(Code.WARNING, text)


def check_capacity(excesses: Sequence[Excess]) -> Result:
    """Warn about providers of which more is allocated than the capacity."""
    if not excesses:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"more is allocated than the capacity: {names([str(excess) for excess in excesses])}. Move"
        " servers away, or undo the change of an allocation ratio or of reserved resources."
        " Without such a change, run cpu-tiers placement check",
    )


def check_weigher(conf: cfg.ConfigOpts) -> Result:
    """Warn if options of nova-scheduler have no effect, because no weigher loads cpu-tiers.

    :param conf: the configuration of nova-scheduler.
    """
    scheduler = conf[filter_scheduler.GROUP]
    try:
        idle = [name for name in _OF_THE_WEIGHER if scheduler[name]]
    except (cfg.Error, ValueError) as error:  # oslo.config checks a value when the value is read
        return Result(Code.FAILURE, str(error))
    if not idle or loads_weigher(conf):
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"[filter_scheduler] {', '.join(idle)}: no effect, because nova-scheduler does not load"
        " cpu-tiers. Set [filter_scheduler] weight_classes to"
        " nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``upgrade check`` and return its exit status."""
    conf = cfg.ConfigOpts()
    with wrapped_errors(), masked_output():
        hide(conf)
        return run(conf, "nova", Checks(conf), list(sys.argv[1:] if argv is None else argv))
