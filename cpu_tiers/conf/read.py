"""Reads nova.conf for the command line, outside of Nova's services."""

import math
from collections.abc import Sequence

from oslo_config import cfg

from cpu_tiers.conf import list_opts, nova
from cpu_tiers.conf.huge_pages import read_reserved_pages
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.inventory.contract import AllocationRatio, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet

_GROUPS = (*nova.OPTIONS, *list_opts())

_CPU_SETS = (
    (None, "vcpu_pin_set"),
    ("compute", "cpu_shared_set"),
    ("compute", "cpu_dedicated_set"),
)


def read_config(
    files: Sequence[str], folders: Sequence[str] = (), *, is_searched: bool = True
) -> cfg.ConfigOpts:
    """Return the configuration, with the options of cpu-tiers and of :mod:`cpu_tiers.conf.nova`.

    :param files: the configuration files; a later file overrides an earlier file.
        If there are none, the files of :func:`config_files`, or the defaults if there is
        no such file.
    :param folders: the folders with further files, which override ``files``. If there are none,
        the folders that nova-compute reads: ``nova.conf.d`` and ``nova-compute.conf.d``.
    :param is_searched: whether the files and folders of this machine are read where none are
        given.
    :raises InvalidInput: a file cannot be read, or values are invalid; all faults
        at once.
    """
    conf = cfg.ConfigOpts()
    for group, options in _GROUPS:
        conf.register_opts(options, group=group)
    try:
        conf(
            args=[],
            project="nova",
            prog="nova-compute",
            default_config_files=config_files(files) if is_searched else list(files),
            default_config_dirs=list(folders) or (None if is_searched else []),
        )
    except cfg.ConfigFilesNotFoundError as error:
        raise InvalidInput.of(
            "--config-file", f"cannot read {', '.join(error.config_files)}", "name a nova.conf"
        ) from error
    except cfg.ConfigFileParseError as error:
        raise InvalidInput.of(
            str(error.config_file), str(error.msg), "write nova.conf as INI"
        ) from error
    except (OSError, UnicodeError) as error:
        where = f"--config-file {' '.join(files)}".strip()
        raise InvalidInput.of(where, f"cannot be read ({error})", "name a nova.conf") from error
    _check(conf)
    return conf


def config_files(given: Sequence[str]) -> list[str]:
    """Return the configuration files of a command.

    :param given: the files of the command line. If there are none, the files that nova-compute
        reads: nova.conf, and nova-compute.conf, which Debian and Ubuntu install beside it.
    """
    return list(given) or list(cfg.find_config_files(project="nova", prog="nova-compute"))


def inventory_options(conf: cfg.ConfigOpts) -> InventoryOptions:
    """Return the options that decide about the inventories of a host.

    :raises InvalidInput: a CPU set, a ratio or ``reserved_huge_pages`` is malformed, or Nova
        refuses two options beside each other.
    """
    faults = FaultList()
    sets: dict[str, CpuSet | None] = {}
    for group, name in _CPU_SETS:
        text = conf[group][name] if group else conf[name]
        where = f"nova.conf, [{group or 'DEFAULT'}] {name}"
        with faults:
            sets[name] = CpuSet.parse(text, where=where) if text else None
    _refuse_together(conf, faults)
    ratios: dict[str, AllocationRatio] = {}
    for resource in ("cpu", "ram", "disk"):
        with faults:
            ratios[resource] = _ratio(conf, resource)
    reserved_pages: dict[int, dict[int, int]] = {}
    with faults:
        reserved_pages = read_reserved_pages(conf.reserved_huge_pages or ())
    faults.raise_if_any()
    return InventoryOptions(
        vcpu_pin_set=sets["vcpu_pin_set"],
        cpu_shared_set=sets["cpu_shared_set"],
        cpu_dedicated_set=sets["cpu_dedicated_set"],
        cpu_allocation_ratio=ratios["cpu"],
        ram_allocation_ratio=ratios["ram"],
        disk_allocation_ratio=ratios["disk"],
        reserved_host_cpus=conf.reserved_host_cpus,
        reserved_host_memory_mb=conf.reserved_host_memory_mb,
        reserved_host_disk_mb=conf.reserved_host_disk_mb,
        report_vcpu_shares=conf.libvirt.report_vcpu_shares,
        vcpu_share_multiplier=conf.libvirt.vcpu_share_multiplier,
        emulator_overhead_percent=conf.libvirt.emulator_overhead_percent,
        reserved_huge_pages=reserved_pages,
        enable_numa_reporting_to_placement=conf.compute.enable_numa_reporting_to_placement,
    )


def _refuse_together(conf: cfg.ConfigOpts, faults: FaultList) -> None:
    """Add faults of options with which nova-compute does not start beside each other.

    Source: Nova, ``LibvirtDriver._check_cpu_set_configuration``.
    """
    sets = [name for name in ("cpu_shared_set", "cpu_dedicated_set") if conf.compute[name]]
    if conf.vcpu_pin_set:
        if conf.compute.cpu_dedicated_set:
            faults.add(
                "nova.conf, [DEFAULT] vcpu_pin_set and [compute] cpu_dedicated_set",
                "both are set, and nova-compute does not start",
                "unset vcpu_pin_set",
            )
    elif sets and conf.reserved_host_cpus:
        faults.add(
            f"nova.conf, [DEFAULT] reserved_host_cpus and [compute] {' and '.join(sets)}",
            "both are set, and nova-compute does not start",
            "unset reserved_host_cpus, and leave CPUs for the host out of the sets",
        )


def _ratio(conf: cfg.ConfigOpts, resource: str) -> AllocationRatio:
    """Return the configured allocation ratio of a resource.

    As in Nova, the initial ratio is used if the ratio is not set, or 0.0.
    """
    initial = not conf[f"{resource}_allocation_ratio"]
    name = f"{'initial_' if initial else ''}{resource}_allocation_ratio"
    value: float = conf[name]
    # oslo.config accepts inf and nan as floats.
    if not 0 < value < math.inf:
        raise InvalidInput.of(
            f"nova.conf, [DEFAULT] {name}", f"got {value}", "give a number above 0"
        )
    return AllocationRatio(value=value, is_initial=initial)


def _check(conf: cfg.ConfigOpts) -> None:
    """Read every option once, since oslo.config checks a value when it is read.

    :raises InvalidInput: with every option whose value is invalid.
    """
    faults = FaultList()
    for group, options in _GROUPS:
        for option in options:
            try:
                conf[group][option.name] if group else conf[option.name]
            except (cfg.Error, ValueError) as error:
                where = f"nova.conf, [{group or 'DEFAULT'}] {option.name}"
                # oslo.config repeats the name and the value; the fault has a place of its own.
                reason = str(error).rpartition(" is not valid: ")[2]
                faults.add(
                    where, f"invalid ({reason})", "see the sample file of Nova or of cpu-tiers"
                )
    faults.raise_if_any()
