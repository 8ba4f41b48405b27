"""Reads nova.conf for the command line, outside of Nova's services.

Nova's services register Nova's options themselves, so that only ``[cpu_tiers]`` is in the sample
file of cpu-tiers. Names, defaults and ranges are taken from Nova's configuration reference.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import cfg, types

from cpu_tiers.conf import list_opts, weight_classes
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.inventory.contract import AllocationRatio, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet

GROUP = "cpu_tiers"
OPTIONS = [
    cfg.BoolOpt(
        "read_databases",
        default=False,
        help="""
Read the databases of Placement and Nova instead of their APIs, in each
command that reads a whole cloud: a cloud of 10,000 hosts takes seconds
instead of minutes, and is read at one moment. The commands have the same
option, ``--databases`` and ``--no-databases``. No service reads this option.

The transactions can only read. A cell whose database does not answer is
named, and its servers are on no host.

Related options:

* ``[placement_database] connection``, which placement.conf has
* ``[api_database] connection``, which also names the cells; and
  ``[database] connection`` for cells that are templates of URLs
* ``[cpu_tiers] database_user``
* ``[DEFAULT] service_down_time``
""",
    ),
    cfg.StrOpt(
        "database_user",
        help="""
The user of all databases, instead of the users in the URLs: one that may
only SELECT. Not set: the users in the URLs.

Related options:

* ``[cpu_tiers] database_password``
""",
    ),
    cfg.StrOpt(
        "database_password",
        secret=True,
        help="""
The password of the user of all databases.

Related options:

* ``[cpu_tiers] database_user``
""",
    ),
]
"""The options of the commands that read a whole cloud."""

PROVIDER_FILE_OPTIONS: list[tuple[str | None, list[cfg.Opt]]] = [
    (None, [cfg.StrOpt("compute_driver"), cfg.StrOpt("state_path", default="/var/lib/nova")]),
    (
        "compute",
        [cfg.StrOpt("provider_config_location", default="/etc/nova/provider_config/")],
    ),
]
"""The options that say which files give a host its shares, and whether files are needed."""

DATABASE_OPTIONS: list[tuple[str | None, list[cfg.Opt]]] = [
    (
        None,
        [
            cfg.IntOpt("service_down_time", default=60),
            cfg.StrOpt("servicegroup_driver", default="db"),
        ],
    ),
    ("placement_database", [cfg.StrOpt("connection", secret=True)]),
    ("api_database", [cfg.StrOpt("connection", secret=True)]),
    ("database", [cfg.StrOpt("connection", secret=True)]),
]
"""The options of Placement and Nova that say where and what their databases are."""

DEFAULT_FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
"""The default of ``[filter_scheduler] enabled_filters``."""

NOVAS_OPTIONS: list[tuple[str | None, list[cfg.Opt]]] = [
    *PROVIDER_FILE_OPTIONS,
    *DATABASE_OPTIONS,
    (
        None,
        [
            cfg.FloatOpt("cpu_allocation_ratio", min=0.0),
            cfg.FloatOpt("ram_allocation_ratio", min=0.0),
            cfg.FloatOpt("disk_allocation_ratio", min=0.0),
            cfg.FloatOpt("initial_cpu_allocation_ratio", default=4.0, min=0.0),
            cfg.FloatOpt("initial_ram_allocation_ratio", default=1.0, min=0.0),
            cfg.FloatOpt("initial_disk_allocation_ratio", default=1.0, min=0.0),
            cfg.StrOpt("vcpu_pin_set"),
            cfg.IntOpt("reserved_host_cpus", default=0, min=0),
            cfg.IntOpt("reserved_host_memory_mb", default=512, min=0),
            cfg.IntOpt("reserved_host_disk_mb", default=0, min=0),
            cfg.MultiOpt("reserved_huge_pages", item_type=types.Dict()),
            cfg.StrOpt("instances_path", default="/var/lib/nova/instances"),
        ],
    ),
    (
        "compute",
        [
            cfg.StrOpt("cpu_shared_set"),
            cfg.StrOpt("cpu_dedicated_set"),
            cfg.BoolOpt("packing_host_numa_cells_allocation_strategy", default=False),
        ],
    ),
    (
        "filter_scheduler",
        [
            cfg.FloatOpt("ram_weight_multiplier", default=1.0),
            cfg.FloatOpt("cpu_weight_multiplier", default=1.0),
            cfg.FloatOpt("disk_weight_multiplier", default=1.0),
            cfg.FloatOpt("num_instances_weight_multiplier", default=0.0),
            cfg.FloatOpt("hypervisor_version_weight_multiplier", default=1.0),
            weight_classes.OPTION,
            cfg.BoolOpt("pci_in_placement", default=False),
            cfg.ListOpt("enabled_filters", default=list(DEFAULT_FILTERS)),
            cfg.StrOpt("aggregate_image_properties_isolation_namespace"),
            cfg.StrOpt("aggregate_image_properties_isolation_separator", default="."),
        ],
    ),
    ("pci", [cfg.MultiStrOpt("alias", default=[])]),
    (
        "scheduler",
        [
            cfg.BoolOpt("image_metadata_prefilter", default=False),
            cfg.BoolOpt("query_placement_for_image_type_support", default=False),
            cfg.BoolOpt("query_placement_for_routed_network_aggregates", default=False),
            cfg.BoolOpt("enable_isolated_aggregate_filtering", default=False),
            cfg.BoolOpt("limit_tenants_to_placement_aggregate", default=False),
            cfg.BoolOpt("placement_aggregate_required_for_tenants", default=False),
        ],
    ),
    ("workarounds", [cfg.BoolOpt("disable_fallback_pcpu_query", default=False)]),
    (
        "libvirt",
        # The range of libvirt, which refuses other priorities. Nova does not check it.
        [
            cfg.IntOpt("realtime_scheduler_priority", default=1, min=1, max=99),
            cfg.BoolOpt("cpu_power_management", default=False),
        ],
    ),
]

_PAGES_OPTION = "nova.conf, [DEFAULT] reserved_huge_pages"
_PAGES_SYNTAX = (
    "write node:0,size:2048,count:64, with a size in kB or with a unit, such as 2MB or 1GB"
)

_KB = {"k": 1, "m": 2**10, "g": 2**20}


def read_config(
    files: Sequence[str], folders: Sequence[str] = (), *, is_searched: bool = True
) -> cfg.ConfigOpts:
    """Return the configuration, with the options of cpu-tiers and of :mod:`cpu_tiers.conf.read`.

    :param files: the configuration files; a later file overrides an earlier file. If there are
        none, the files of :func:`config_files`, or the defaults if there is no such file.
    :param folders: the folders with further files, which override ``files``. If there are none,
        the folders that nova-compute reads: ``nova.conf.d`` and ``nova-compute.conf.d``.
    :param is_searched: whether the files and folders of this machine are read where none are
        given.
    :raises InvalidInput: a file cannot be read, or values are invalid; all faults at once.
    """
    conf = cfg.ConfigOpts()
    groups = (*NOVAS_OPTIONS, *list_opts())
    for group, options in groups:
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
    _check(conf, groups)
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
    texts = {
        "[DEFAULT] vcpu_pin_set": conf.vcpu_pin_set,
        "[compute] cpu_shared_set": conf.compute.cpu_shared_set,
        "[compute] cpu_dedicated_set": conf.compute.cpu_dedicated_set,
    }
    pinned, shared, dedicated = (
        faults.read(CpuSet.parse, text, where=f"nova.conf, {name}") if text else None
        for name, text in texts.items()
    )
    _refuse_together(conf, faults)
    ratios: dict[str, AllocationRatio] = {}
    for resource in ("cpu", "ram", "disk"):
        with faults:
            ratios[resource] = _ratio(conf, resource)
    reserved_pages = faults.read(read_reserved_pages, conf.reserved_huge_pages or ())
    faults.raise_if_any()
    return InventoryOptions(
        vcpu_pin_set=pinned,
        cpu_shared_set=shared,
        cpu_dedicated_set=dedicated,
        cpu_allocation_ratio=ratios["cpu"],
        ram_allocation_ratio=ratios["ram"],
        disk_allocation_ratio=ratios["disk"],
        reserved_host_cpus=conf.reserved_host_cpus,
        reserved_host_memory_mb=conf.reserved_host_memory_mb,
        reserved_host_disk_mb=conf.reserved_host_disk_mb,
        report_vcpu_shares=conf.libvirt.report_vcpu_shares,
        vcpu_share_multiplier=conf.libvirt.vcpu_share_multiplier,
        emulator_overhead_percent=conf.libvirt.emulator_overhead_percent,
        reserved_huge_pages=reserved_pages or {},
        enable_numa_reporting_to_placement=conf.compute.enable_numa_reporting_to_placement,
        cpu_power_management=conf.libvirt.cpu_power_management,
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


def _check(conf: cfg.ConfigOpts, groups: Iterable[tuple[str | None, list[cfg.Opt]]]) -> None:
    """Read every option once, since oslo.config checks a value when it is read.

    :raises InvalidInput: with every option whose value is invalid.
    """
    faults = FaultList()
    for group, options in groups:
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


def read_reserved_pages(values: Iterable[Mapping[str, str]]) -> dict[int, dict[int, int]]:
    """Return the numbers of reserved pages, by NUMA node and page size in kB.

    :raises InvalidInput: with every value that is malformed, or that repeats the
        node and the size of another value.
    """
    reserved: dict[int, dict[int, int]] = {}
    faults = FaultList()
    for value in values:
        with faults:
            node, size, count = _read_pages(value)
            if size in reserved.setdefault(node, {}):
                given = f"pages of {size} kB of node {node} twice"
                raise InvalidInput.of(_PAGES_OPTION, given, "write a single value with the sum")
            reserved[node][size] = count
    faults.raise_if_any()
    return reserved


def _read_pages(value: Mapping[str, str]) -> tuple[int, int, int]:
    size = re.fullmatch(r"([1-9][0-9]{0,11})(?:([KMG])(?:i?B)?)?", value.get("size", ""), re.I)
    node, count = value.get("node", ""), value.get("count", "")
    # At most 9 digits, and plain ones: int() also takes blanks, signs and underscores.
    numbers = all(re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) for text in (node, count))
    if value.keys() != {"node", "size", "count"} or size is None or not numbers:
        given = ",".join(f"{key}:{text}" for key, text in value.items())
        raise InvalidInput.of(_PAGES_OPTION, f"got {given!r}", _PAGES_SYNTAX)
    return int(node), int(size[1]) * _KB[(size[2] or "k").lower()], int(count)
