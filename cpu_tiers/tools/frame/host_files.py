"""What the files of Nova on this machine say of the host."""

import re
from contextlib import suppress
from pathlib import Path

from oslo_config import cfg

from cpu_tiers.tools.frame.provider_files import (
    ProviderFiles,
    RootNames,
    read_provider_files,
    read_text,
)

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read_host_files(conf: cfg.ConfigOpts, name: str) -> ProviderFiles:
    """Return the provider configuration files of nova-compute on this machine.

    :param name: the name of the host's root provider.
    """
    root = read_root_names(conf, name)
    return read_provider_files(conf.compute.provider_config_location, root)


def read_root_names(conf: cfg.ConfigOpts, name: str) -> RootNames:
    """Return the name and the uuid of the root provider of the host.

    nova-compute keeps the uuid in ``compute_id`` in ``[DEFAULT] state_path``.
    """
    text = ""
    with suppress(OSError, ValueError):
        text = read_text(Path(conf.state_path, "compute_id")).strip().lower()
    return RootNames(name=name, uuid=text if _UUID.fullmatch(text) else None)
