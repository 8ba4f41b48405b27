"""Options of Nova that decide about hosts and guests, for the command line.

Nova's services register these options themselves, so they are not in the sample
file of cpu-tiers. Names, defaults and ranges are taken from Nova's configuration
reference.
"""

from oslo_config import cfg, types

OPTIONS: list[tuple[str | None, list[cfg.Opt]]] = [
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
        ],
    ),
    (
        "filter_scheduler",
        [
            cfg.FloatOpt("ram_weight_multiplier", default=1.0),
            cfg.FloatOpt("cpu_weight_multiplier", default=1.0),
            cfg.FloatOpt("disk_weight_multiplier", default=1.0),
            cfg.FloatOpt("num_instances_weight_multiplier", default=0.0),
        ],
    ),
    (
        "scheduler",
        [
            cfg.BoolOpt("image_metadata_prefilter", default=False),
            cfg.BoolOpt("query_placement_for_image_type_support", default=False),
            cfg.BoolOpt("query_placement_for_routed_network_aggregates", default=False),
            cfg.BoolOpt("enable_isolated_aggregate_filtering", default=False),
            cfg.BoolOpt("limit_tenants_to_placement_aggregate", default=False),
        ],
    ),
    ("workarounds", [cfg.BoolOpt("disable_fallback_pcpu_query", default=False)]),
    (
        "libvirt",
        # The range of libvirt, which refuses other priorities. Nova does not check it.
        [cfg.IntOpt("realtime_scheduler_priority", default=1, min=1, max=99)],
    ),
]
