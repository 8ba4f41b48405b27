"""The features of cpu-tiers in nova-api."""

import functools
from collections.abc import Callable
from typing import Any

from cpu_tiers.nova import cpu_policies
from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service, extends_cpu_policies
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam, install, remove

API = Service(
    name="nova-api",
    features=(
        Feature(
            name=CPU_POLICIES.name,
            switch=CPU_POLICIES.switch,
            seams=(*cpu_policies.SEAMS, cpu_policies.MATRIX),
            is_on=extends_cpu_policies,
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
