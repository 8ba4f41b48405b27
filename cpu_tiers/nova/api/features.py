"""The features of cpu-tiers in nova-api."""

from dataclasses import replace
from typing import Any

from cpu_tiers.nova.features import CPU_POLICIES, Feature, Service
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Function, install, remove, seam

_ADMISSION = "cpu_tiers.nova.api.flavor_admission:SEAMS"

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
