"""The checks of ``cpu-tiers-status upgrade check`` of hosts and of nova-scheduler's options.

A check yields the texts of its warnings; ``conf`` is the configuration of nova-scheduler.
oslo.config checks a value when the value is read, so a check of options raises the error of
oslo.config for a wrong value.
"""

from collections.abc import Iterator, Sequence

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result

from cpu_tiers.conf import compute, filter_scheduler, libvirt, weigher
from cpu_tiers.conf.weight_classes import ALL_WEIGHERS, OUR_CLASS
from cpu_tiers.model.names import MULTIPLIER_TRAIT, POLICY_TRAITS
from cpu_tiers.model.providers import Excess
from cpu_tiers.tools.frame.ladder_options import OF_THE_WEIGHER, scheduler_of
from cpu_tiers.tools.frame.provider_files import ProviderFiles, faults_at_start
from cpu_tiers.tools.frame.terminal import count_of_hosts, join_names
from cpu_tiers.tools.placement.inventories import HostSurvey
from cpu_tiers.tools.tiers.flavor_advice import UNCOUNTED_NODES, remedy_of_uncounted_nodes
from cpu_tiers.tools.tiers.ladder import Step, step_of_cloud

_MULTIPLIER = "resource_provider_weight_multiplier"


def step_of(hosts: Sequence[HostSurvey], conf: cfg.ConfigOpts) -> Step:
    """Return the step of a cloud."""
    return step_of_cloud((host.step for host in hosts), scheduler_of(conf))


def check_step(hosts: Sequence[HostSurvey], conf: cfg.ConfigOpts) -> Result:
    """Name the step of the ladder on which a cloud stands; never a warning."""
    scheduler, step = scheduler_of(conf), step_of(hosts, conf)
    drivers = sum(MULTIPLIER_TRAIT in host.functions for host in hosts)
    return Result(
        Code.SUCCESS,
        f"step {step}: of {len(hosts)} hosts, {sum(host.has_shares for host in hosts)} report"
        f" shares, {sum(host.is_numa_aware is True for host in hosts)} report NUMA nodes, and"
        f" {drivers} have the trait of the driver of cpu-tiers, which stays on a host that goes"
        " back to Nova's own driver; nova-scheduler"
        f" {'loads' if scheduler.loads_weigher else 'does not load'} the weigher",
    )


def check_numa(hosts: Sequence[HostSurvey], step: Step = Step.DRIVER) -> Iterator[str]:
    """Warn about hosts where the option is not set, or whose report an older cpu-tiers has made.

    Spec: numa-topology-with-rps, "Optionally configured NUMA resources".

    :param step: of the cloud: Nova's own driver does not read the option.
    """
    if not step.has_driver:
        return
    old = [host.name for host in hosts if host.is_numa_aware and not host.tells_nodes]
    undecided = [host.name for host in hosts if host.is_numa_aware is None]
    if old:
        yield (
            f"{count_of_hosts(old, hosts)} reported by an older cpu-tiers: start nova-compute on"
            f" {join_names(old)} before nova-scheduler, which finds these hosts for no server with"
            " NUMA nodes until then, and run cpu-tiers allocation heal"
        )
    elif undecided:
        yield (
            f"{count_of_hosts(undecided, hosts)} undecided: on {join_names(undecided)}, set"
            " [compute] enable_numa_reporting_to_placement to true (for servers with a NUMA"
            " topology) or false (for servers without) before the default of the option changes"
        )


def check_shares(hosts: Sequence[HostSurvey], step: Step = Step.DRIVER) -> Iterator[str]:
    """Warn if some hosts report shares and other hosts do not.

    A scheduler that requests shares cannot use hosts without shares.

    :param step: of the cloud, which decides how a host comes to report shares.
    """
    vcpu_hosts = [host for host in hosts if host.has_vcpu]
    without_shares = [host.name for host in vcpu_hosts if not host.has_shares]
    if without_shares and len(without_shares) < len(vcpu_hosts):
        yield (
            f"{count_of_hosts(without_shares, vcpu_hosts)} without shares: on"
            f" {join_names(without_shares)}, "
            + (
                "set [libvirt] report_vcpu_shares = true before you set [filter_scheduler]"
                " query_placement_for_vcpu_shares"
                if step.has_driver
                else "write the provider.yaml (cpu-tiers inventory show -f provider-yaml --file)"
                " and restart nova-compute before you give flavors their pairs"
            )
        )


def check_uncounted_nodes(
    hosts: Sequence[HostSurvey], flavors: Sequence[str], conf: cfg.ConfigOpts
) -> Iterator[str]:
    """Warn about tiers on NUMA nodes of hosts that report their shares as one amount.

    :param flavors: the flavors of such servers.
    """
    # With the option, a server with NUMA nodes finds only hosts that report their nodes.
    if not flavors or conf[filter_scheduler.GROUP].query_placement_for_numa:
        return
    as_one = [host.name for host in hosts if host.has_shares and not host.is_numa_aware]
    if as_one:
        remedy = remedy_of_uncounted_nodes(has_driver=step_of(hosts, conf).has_driver)
        yield (
            f"servers of {join_names(flavors)} stand on NUMA nodes, and"
            f" {count_of_hosts(as_one, hosts)} report their shares as one amount:"
            f" {join_names(as_one)}. {UNCOUNTED_NODES[0].upper()}{UNCOUNTED_NODES[1:]}: {remedy}"
        )


def check_provider_files(files: ProviderFiles, held: int, *, needs_file: bool) -> Iterator[str]:
    """Warn of what the next start of nova-compute on this machine makes of its files.

    :param held: the shares that servers of this machine hold.
    :param needs_file: nova-compute runs Nova's own driver.
    """
    yield from map(str, faults_at_start(files, held=held, needs_file=needs_file))


def check_capacity(excesses: Sequence[Excess]) -> Iterator[str]:
    """Warn about providers of which more is allocated than the capacity."""
    if excesses:
        yield (
            f"more is allocated than the capacity: {join_names(list(map(str, excesses)))}. Move"
            " servers away, or undo the change of an allocation ratio or of reserved resources."
            " Without such a change, run cpu-tiers placement check"
        )


def check_weigher(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Warn about options without the weigher of cpu-tiers, and about a weigher without effect."""
    scheduler = conf[filter_scheduler.GROUP]
    idle = [name for name in OF_THE_WEIGHER if scheduler[name]]
    is_loaded = scheduler_of(conf).loads_weigher
    weighs = any(scheduler[name] for name in (_MULTIPLIER, *weigher.NEARNESS))
    # With one of the options, the weigher is loaded for requests, and need not weigh.
    if is_loaded and not weighs and not idle:
        yield (
            f"[filter_scheduler] {_MULTIPLIER} is 0.0: nova-scheduler loads the weigher, which"
            " gives no host a score; only preferred and avoided traits count. Set it to 100.0 or"
            " more; leave it if host aggregates set it, or if only these traits are to count"
        )
    if idle and not is_loaded:
        yield (
            f"[filter_scheduler] {', '.join(idle)}: no effect, because nova-scheduler does not"
            " load cpu-tiers. Set [filter_scheduler] weight_classes to"
            f" {ALL_WEIGHERS}, {OUR_CLASS}"
        )


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options that the checks read."""
    for module in (filter_scheduler, weigher, compute, libvirt):
        conf.register_opts(module.OPTIONS, group=module.GROUP)


def check_host_traits(hosts: Sequence[HostSurvey], conf: cfg.ConfigOpts) -> Iterator[str]:
    """Warn about hosts without the traits that ``require_host_traits`` demands."""
    scheduler = conf[filter_scheduler.GROUP]
    if scheduler.require_host_traits and scheduler.query_placement_for_vcpu_shares:
        # Servers of these flavors have shared vCPUs, so only hosts with VCPU count.
        yield from _lacking(
            [host for host in hosts if host.has_vcpu],
            "[libvirt] report_vcpu_shares",
            (MULTIPLIER_TRAIT,),
            "quota:cpu_shares_multiplier",
        )
    if scheduler.require_host_traits and conf[compute.GROUP].extend_cpu_policies:
        yield from _lacking(
            hosts,
            "[compute] extend_cpu_policies",
            POLICY_TRAITS,
            "amounts of VCPU and PCPU, hw:cpu_emulator_threads, a real-time mask without"
            " hw:cpu_realtime, or hw:numa_cpus.N without hw:numa_mem.N",
        )


def _lacking(
    hosts: Sequence[HostSurvey], option: str, traits: Sequence[str], flavors: str
) -> Iterator[str]:
    """Yield a warning if hosts lack a trait that an option gives to hosts, else nothing.

    :param flavors: the extra specs of flavors that need the traits.
    """
    lacking = [host for host in hosts if not host.functions.issuperset(traits)]
    if not lacking:
        return
    present = frozenset.intersection(*(host.functions for host in lacking))
    absent = [trait for trait in traits if trait not in present]
    yield (
        f"{count_of_hosts(lacking, hosts)} without {' or '.join(absent)}:"
        f" {join_names([host.name for host in lacking])}. [filter_scheduler] require_host_traits"
        " is on, so none of these hosts gets a new server, or a server by a resize, of a flavor"
        f" with {flavors}. On these hosts, set [DEFAULT] compute_driver ="
        f" cpu_tiers.LibvirtDriver and {option} = true, and restart nova-compute; or set"
        " require_host_traits = false until then"
    )
