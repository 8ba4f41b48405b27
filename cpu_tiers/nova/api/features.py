"""The features of cpu-tiers in nova-api."""

import functools
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from cpu_tiers.conf import api, filter_scheduler
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.api import flavor_admission
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam, install, remove


def _refuses_faulty_flavors(conf: cfg.ConfigOpts) -> bool:
    options.register(api)
    is_on: bool = conf.api.refuse_faulty_flavors
    if is_on:
        options.register(filter_scheduler)  # which queries nova-scheduler makes
    return is_on


API = Service(
    name="nova-api",
    features=(
        Feature(
            name=CPU_POLICIES.name,
            switch=CPU_POLICIES.switch,
            seams=(*cpu_policies.SEAMS, *flavor_admission.SEAMS),
            is_on=CPU_POLICIES.is_on,
        ),
        Feature(
            name="flavor admission",
            switch="``[api] refuse_faulty_flavors``",
            seams=flavor_admission.SEAMS,
            is_on=_refuses_faulty_flavors,
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


def _start_later(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def setup_profiler(binary: str, host: str) -> Any:
        remove([CONFIGURED])
        API.start()
        return original(binary, host)

    return setup_profiler


CONFIGURED = Seam(
    module="nova.service",
    path="setup_profiler",
    parameters=("binary", "host"),
    wrap=_start_later,
)
"""The seam for nova-api as the script ``nova-api-wsgi`` of Nova 31 and 32, which loads the
validators before it reads nova.conf. ``wsgi_app.init_application`` calls the function after it
has set up the log, and before it loads the application. The seam removes itself at the call."""
