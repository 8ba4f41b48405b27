"""The configuration files: nova.conf of each service, placement.conf, api-paste.ini."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Sections = Mapping[str, Mapping[str, Any]]

_LOG_LEVELS = "amqp=WARN,neutronclient=ERROR,nova.api.openstack.requestlog=WARN"

# Nova's own without authtoken: there is no Keystone, and requests come with the headers that
# it would put there.
_PASTE = """
[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/v2.1: servers
[pipeline:servers]
pipeline = faultwrap request_log context app
[filter:faultwrap]
paste.filter_factory = nova.api.openstack:FaultWrapper.factory
[filter:request_log]
paste.filter_factory = nova.api.openstack.requestlog:RequestLog.factory
[filter:context]
paste.filter_factory = nova.api.auth:NovaKeystoneContext.factory
[app:app]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
"""


def write(path: Path, *parts: Sections) -> Path:
    """Write an INI file; later values replace earlier values."""
    path.parent.mkdir(exist_ok=True)
    sections: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, options in part.items():
            sections.setdefault(name, {}).update(options)
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in options.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


def placement(folder: Path, database: str, *parts: Sections) -> Path:
    """Write the configuration of Placement, with more options, and return its folder."""
    policy = folder / "placement" / "policy.yaml"
    write(
        folder / "placement" / "placement.conf",
        {
            "api": {"auth_strategy": "noauth2"},
            "placement_database": {"connection": database, "sync_on_startup": True},
            "oslo_policy": {"policy_file": policy},
        },
        *parts,
    )
    # Its stand-in for Keystone knows one role: reshapes want "service".
    policy.write_text('"service_api": "role:admin"\n')
    return policy.parent


def nova(folder: Path, transport: str, placement_url: str, others_url: str) -> Sections:
    """Return the options of all services of Nova."""
    without_keystone = {"auth_type": "admin_token", "token": "admin"}
    return {
        "DEFAULT": {
            "transport_url": transport,
            "report_interval": 1,
            "update_resources_interval": 5,
            "periodic_fuzzy_delay": 0,  # at most so many seconds until the first run, at random
            "default_log_levels": _LOG_LEVELS,
            "my_ip": "127.0.0.1",
            "allow_resize_to_same_host": True,
            "resume_guests_state_on_host_boot": True,
        },
        "compute": {"extend_cpu_policies": True},
        "oslo_concurrency": {"lock_path": folder},
        "placement": {**without_keystone, "endpoint": placement_url},
        "neutron": {
            **without_keystone,
            "endpoint": others_url,
            "endpoint_override": others_url,
        },
        "glance": {"endpoint_override": others_url},
        "oslo_limit": {
            **without_keystone,
            "endpoint": f"{others_url}/v3",
            "endpoint_override": f"{others_url}/v3",
            "endpoint_id": "nova",
        },
        "cache": {"enabled": False},
        "vnc": {"enabled": False},
    }


def control(folder: Path, databases: str, *parts: Sections) -> Path:
    """Write the files of nova-api, conductor and scheduler; return the path of nova.conf."""
    path = write(
        folder / "control" / "nova.conf",
        {
            "api_database": {"connection": f"{databases}nova_api"},
            "database": {"connection": f"{databases}nova"},
            "quota": {"driver": "nova.quota.NoopQuotaDriver"},
            "conductor": {"workers": 1},
            "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 1},
        },
        *parts,
    )
    (path.parent / "api-paste.ini").write_text(_PASTE)
    return path
