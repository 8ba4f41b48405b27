"""The features of cpu-tiers in nova-api."""

from dataclasses import replace
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from cpu_tiers.conf.quota import UNIFIED_LIMITS
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Function, install, remove, seam

LOG = logging.getLogger(__name__)

_ADMISSION = "cpu_tiers.nova.api.flavor_admission:SEAMS"


def _has_unified_limits(conf: cfg.ConfigOpts) -> bool:
    has = bool(conf.quota.driver == UNIFIED_LIMITS)
    if not has:
        LOG.warning(
            "[quota] count_vcpu_shares has no effect: [quota] driver is %s; set driver = %s,"
            " or remove count_vcpu_shares, and restart nova-api",
            conf.quota.driver,
            UNIFIED_LIMITS,
        )
    return has


API = Service(
    name="nova-api",
    features=(
        replace(CPU_POLICIES, wrappers=(*CPU_POLICIES.wrappers, _ADMISSION), groups=("api",)),
        Feature(
            name="flavor admission",
            option="api.refuse_faulty_flavors",
            wrappers=(_ADMISSION,),
            groups=("filter_scheduler",),  # which queries nova-scheduler makes
        ),
        Feature(
            name="quota of shares",
            option="quota.count_vcpu_shares",
            condition=_has_unified_limits,
            switch="``[quota] count_vcpu_shares`` with unified limits",
            wrappers=("cpu_tiers.nova.api.shares_quota:SEAMS",),
        ),
        Feature(
            name="live tier changes",
            option="compute.live_tier_change",
            wrappers=("cpu_tiers.nova.api.tier_change:SEAMS",),
            groups=("filter_scheduler",),  # whether excess claims are given back
        ),
    ),
)


def start() -> None:
    """Turn on the features of nova-api, now or as soon as nova-api has read nova.conf.

    :raises SeamMismatch: a seam does not fit the installed Nova.
    """
    if "config_file" in CONF:  # oslo.config registers the option when it parses nova.conf
        API.start()
    else:
        install([CONFIGURED])


def _start_later(original: Function, binary: str, host: str) -> Any:
    remove([CONFIGURED])
    API.start()
    return original(binary, host)


CONFIGURED = seam("nova.service:setup_profiler", "binary, host", _start_later)
"""The seam for nova-api as the script ``nova-api-wsgi`` of Nova 31 and 32, which loads the
validators before it reads nova.conf. ``wsgi_app.init_application`` calls the function after it
has set up the log, and before it loads the application. The seam removes itself at the call."""
