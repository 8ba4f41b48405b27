"""What the files of Nova on this machine say of the host."""

import re
from contextlib import suppress
from pathlib import Path

from oslo_config import cfg

from cpu_tiers.tools.frame.provider_files import RootNames, read_text

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read_root_names(conf: cfg.ConfigOpts, name: str) -> RootNames:
    """Return the name and the uuid of the root provider of the host.

    nova-compute keeps the uuid in ``compute_id`` in ``[DEFAULT] state_path``.
    """
    text = ""
    with suppress(OSError, ValueError):
        text = read_text(Path(conf.state_path, "compute_id")).strip().lower()
    return RootNames(name=name, uuid=text if _UUID.fullmatch(text) else None)
