"""The part of ``cpu-tiers-status upgrade check`` about traits of hosts (decision D76)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result

from cpu_tiers.conf import compute, filter_scheduler
from cpu_tiers.model.names import MULTIPLIER_TRAIT, POLICY_TRAITS
from cpu_tiers.tools.frame.host_names import names, of_all
from cpu_tiers.tools.placement.inventories import HostSurvey


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function of hosts, by an option of nova-compute.

    :param traits: the traits of a host with the option.
    :param flavors: the extra specs of flavors that need the traits.
    :param needs_vcpu: servers of the flavors have shared vCPUs, so only hosts with VCPU count.
    """

    option: str
    traits: tuple[str, ...]
    flavors: str
    needs_vcpu: bool = False


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options that :func:`check_host_traits` reads."""
    for module in (filter_scheduler, compute):
        conf.register_opts(module.OPTIONS, group=module.GROUP)


def check_host_traits(hosts: Sequence[HostSurvey], conf: cfg.ConfigOpts) -> Result:
    """Warn about hosts without the traits that ``require_host_traits`` demands.

    :param conf: the configuration of nova-scheduler, with the options of :func:`register`.
    """
    try:
        required = list(_required(conf))
    except (cfg.Error, ValueError) as error:  # oslo.config checks a value when the value is read
        return Result(Code.FAILURE, str(error))
    warnings = [text for function in required for text in _lacking(hosts, function)]
    return Result(Code.WARNING, ".\n".join(warnings)) if warnings else Result(Code.SUCCESS)


def _required(conf: cfg.ConfigOpts) -> Iterator[_Function]:
    """Yield the functions whose traits nova-scheduler requires."""
    scheduler = conf[filter_scheduler.GROUP]
    if not scheduler.require_host_traits:
        return
    if scheduler.query_placement_for_vcpu_shares:
        yield _Function(
            option="[libvirt] report_vcpu_shares",
            traits=(MULTIPLIER_TRAIT,),
            flavors="quota:cpu_shares_multiplier",
            needs_vcpu=True,
        )
    if conf[compute.GROUP].extend_cpu_policies:
        yield _Function(
            option="[compute] extend_cpu_policies",
            traits=POLICY_TRAITS,
            flavors=(
                "amounts of VCPU and PCPU, hw:cpu_emulator_threads, a real-time mask without"
                " hw:cpu_realtime, or hw:numa_cpus.N without hw:numa_mem.N"
            ),
        )


def _lacking(hosts: Sequence[HostSurvey], function: _Function) -> Iterator[str]:
    """Yield a warning if hosts lack a trait of a function, else nothing."""
    useful = [host for host in hosts if host.has_vcpu or not function.needs_vcpu]
    lacking = [host for host in useful if not host.functions.issuperset(function.traits)]
    if not lacking:
        return
    present = frozenset.intersection(*(host.functions for host in lacking))
    absent = [trait for trait in function.traits if trait not in present]
    yield (
        f"{of_all(lacking, useful)} without {' or '.join(absent)}:"
        f" {names([host.name for host in lacking])}. [filter_scheduler] require_host_traits is on,"
        " so none of these hosts gets a new server, or a server by a resize, of a flavor with"
        f" {function.flavors}. On these hosts, set [DEFAULT] compute_driver ="
        f" cpu_tiers.LibvirtDriver and {function.option} = true, and restart nova-compute; or set"
        " require_host_traits = false until then"
    )
