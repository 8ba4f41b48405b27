"""The place of a provider.yaml of cpu-tiers beside the files that a site has already."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from oslo_config import cfg

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.records import inventory_json
from cpu_tiers.tools.frame.host_files import read_root_names
from cpu_tiers.tools.frame.provider_files import (
    COMPUTE_NODE,
    SHOWN,
    ProviderEntry,
    is_elsewhere,
    is_made,
    place_faults,
    read_provider_files,
    read_text,
)

LOG = logging.getLogger(__name__)

_STDOUT = 1


def check_place(conf: cfg.ConfigOpts, tree: ProviderTree, file: str | None) -> str | None:
    """Check that nova-compute would take the shares of a file beside its other files.

    :param file: the path of the file; ``None`` for the standard output, which may be a file of
        the folder.
    :returns: the file that has the same shares already, so that no file is needed, or ``None``.
    :raises InvalidInput: nova-compute would not start, or would ignore the shares.
    """
    folder = conf.compute.provider_config_location
    root = read_root_names(conf, tree.providers[0].name)
    files = read_provider_files(folder, root)
    if file:
        _check_target(file)
    target = file or _file_of_stdout(folder)
    replaced = target or (next(iter(files.made)) if len(files.made) == 1 else None)
    others = read_provider_files(folder, root, without=[replaced] if replaced else ())
    entries = list(_entries(tree, replaced or "the new file"))
    faults = [fault for entry in entries for fault in place_faults(others, entry)]
    faults += others.unreadable
    elsewhere = [is_elsewhere(others, entry) for entry in entries]
    is_there = any(entry.file == replaced for entry in files.entries)
    if not faults and all(elsewhere) and replaced and is_there:
        given = f"{elsewhere[0]} has the shares of the host, too"
        faults.append(Fault(replaced, given, f"remove {replaced}"))
    if faults and target and not file:
        faults.append(_left_by_the_shell(target))
    if faults:
        raise InvalidInput(faults)
    if file and os.path.realpath(Path(file).parent) != os.path.realpath(folder):
        LOG.warning(
            "nova-compute reads the files of %s ([compute] provider_config_location), and not %s."
            " Write the file to this folder, or set the option to the folder of the file.",
            folder,
            file,
        )
    return elsewhere[0] if all(elsewhere) else None


def _check_target(file: str) -> None:
    """Check that a file is empty, or was made by cpu-tiers, or does not exist.

    :raises InvalidInput: the file is of somebody else.
    """
    path, text = Path(file), ""
    with suppress(OSError, ValueError):
        text = read_text(path)
    if path.is_file() and path.stat().st_size and not is_made(text):
        raise InvalidInput.of(
            file, "was not made by cpu-tiers", "name another file, which no other program writes"
        )


def _left_by_the_shell(target: str) -> Fault:
    return Fault(
        target,
        "the shell has made this file empty, and nova-compute does not start with an empty file",
        f"remove {target}; --file FILE in place of > leaves no such file",
    )


def _entries(tree: ProviderTree, file: str) -> Iterator[ProviderEntry]:
    for provider in tree.providers:
        if VCPU_SHARES in provider.inventories:
            is_root = provider.parent is None
            yield ProviderEntry(
                file=file,
                key=COMPUTE_NODE if is_root else provider.name,
                is_uuid=is_root,
                shares=inventory_json(provider.inventories[VCPU_SHARES]),
            )


def _file_of_stdout(folder: str) -> str | None:
    """Return the file of a folder to which the shell has directed the standard output."""
    output = os.fstat(_STDOUT)
    if not stat.S_ISREG(output.st_mode):
        return None
    for path in Path(folder).glob(SHOWN):
        if path.exists() and os.path.samestat(path.stat(), output):
            return str(path)
    return None
