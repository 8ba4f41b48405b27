"""The options of the plugin: the group ``cpu_tiers`` of tempest.conf."""

from oslo_config import cfg

GROUP = cfg.OptGroup(name="cpu_tiers", title="CPU performance tiers")

OPTIONS = [
    cfg.StrOpt(
        "resource_class",
        default="CUSTOM_VCPU_SHARES",
        help="The resource class in which the compute hosts report CPU shares.",
    ),
    cfg.DictOpt(
        "tiers",
        default={"gold": "100", "silver": "50", "bronze": "25"},
        help="""
The shares of one vCPU in each tier: two tiers or more, which differ in their
shares. The flavors of the tests have the vCPUs, the memory and the disk of
``[compute] flavor_ref``.
""",
    ),
    cfg.BoolOpt(
        "multiplier",
        default=False,
        help="""
Whether nova-scheduler requests shares for ``quota:cpu_shares_multiplier``
(``[filter_scheduler] query_placement_for_vcpu_shares`` of nova.conf).
""",
    ),
    cfg.BoolOpt(
        "refuse_faulty_flavors",
        default=False,
        help="Whether nova-api refuses faulty flavors (``[api] refuse_faulty_flavors``).",
    ),
]
