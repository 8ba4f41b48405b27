"""The provider configuration files of Nova on this machine (provider.yaml), and their traps.

nova-compute reads the files when it starts. Two files with the same identification stop the start,
and an entry with the name or the uuid of the host hides the entry of ``$COMPUTE_NODE`` without a
log line. Source: Nova, ``nova.compute.provider_config`` and
``ResourceTracker._merge_provider_configs``.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its stubs are not installed

from cpu_tiers.errors import Fault
from cpu_tiers.model.names import VCPU_SHARES

COMPUTE_NODE = "$COMPUTE_NODE"
"""The uuid by which a file names the root provider of each nova-compute that reads the file."""

MARK = 'Made by "cpu-tiers inventory show -f provider-yaml"'
"""A text in the first lines of each file that cpu-tiers has made."""

SHOWN = "[!.]*.yaml"
"""The files of the folder that nova-compute reads: its glob leaves hidden files out."""

_MOST_BYTES = 2**20
_MOST_DIGITS = 100

Inventory = Mapping[str, Any]
"""The fields of an inventory, by their names in Placement."""

_DEFAULTS = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
"""What Placement takes for fields that a file does not have, without ``max_unit``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """An entry of a file: a provider, and the shares that the file gives the provider.

    :param key: the uuid or the name of the provider.
    :param shares: the inventory of CUSTOM_VCPU_SHARES; ``None`` without shares.
    """

    file: str
    key: str
    is_uuid: bool
    shares: Inventory | None = None

    @property
    def identification(self) -> str:
        """Return the identification as the file has it."""
        return f"{'uuid' if self.is_uuid else 'name'}: {self.key}"

    def has_shares(self, expected: Inventory) -> bool:
        """Tell whether the file gives the provider these shares, and no others."""
        return self.shares is not None and {
            **_DEFAULTS,
            **self.shares,
        } == {**_DEFAULTS, **expected}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootNames:
    """The names by which a file may name the root provider of this host.

    :param uuid: ``None`` if this machine has no file of Nova with the uuid.
    """

    name: str
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFiles:
    """The files of a folder, and the names of the host whose nova-compute reads the files.

    :param made: the paths of the files that cpu-tiers has made.
    :param unreadable: a fault for each file with which nova-compute does not start.
    """

    folder: str
    root: RootNames
    entries: tuple[ProviderEntry, ...] = ()
    made: frozenset[str] = frozenset()
    unreadable: tuple[Fault, ...] = ()


def effective_entry(files: ProviderFiles) -> ProviderEntry | None:
    """Return the entry that nova-compute applies to the root provider of a host."""
    by_default = [entry for entry in files.entries if entry.key == COMPUTE_NODE]
    return next(iter([*_named(files), *by_default]), None)


def _named(files: ProviderFiles) -> list[ProviderEntry]:
    """Return the entries that name the host by its name or uuid, and not by $COMPUTE_NODE."""
    root = files.root
    return [
        each for each in files.entries if each.key == (root.uuid if each.is_uuid else root.name)
    ]


def traps(files: ProviderFiles) -> Iterator[Fault]:
    """Yield what happens at the next start of nova-compute, and is not meant.

    The start fails, or the host loses the shares of a file.
    """
    yield from files.unreadable
    seen: dict[str, ProviderEntry] = {}
    for entry in files.entries:
        if other := seen.get(entry.key):
            yield Fault(
                f"{other.file} and {entry.file}",
                f"both have the provider {entry.identification}: nova-compute does not start"
                ' ("has multiple definitions")',
                _joined(files, other, entry),
            )
        seen.setdefault(entry.key, entry)
    named = _named(files)
    if len({entry.key for entry in named}) > 1:
        yield Fault(
            " and ".join(entry.file for entry in named),
            f"host {files.root.name} has an entry by its name and another by its uuid:"
            " nova-compute reports nothing",
            "write everything into a single entry",
        )
    default = seen.get(COMPUTE_NODE)
    if default and default.shares is not None and named and named[0].shares is None:
        yield Fault(
            f"{default.file} and {named[0].file}",
            f"nova-compute uses the entry {named[0].identification}, and ignores the shares of"
            f" uuid: {COMPUTE_NODE} without a log line",
            _joined(files, named[0], default),
        )


def faults_at_start(files: ProviderFiles, *, held: int, needs_file: bool) -> tuple[Fault, ...]:
    """Return what the next start of nova-compute makes of the files of a host, and is not meant.

    :param held, needs_file: as for :func:`lost_file`.
    """
    lost = lost_file(files, held=held, needs_file=needs_file)
    return (*traps(files), *([lost] if lost else []))


def lost_file(files: ProviderFiles, *, held: int, needs_file: bool) -> Fault | None:
    """Return what happens at the next start of nova-compute if the file of a host is lost.

    :param held: the shares that servers of the host hold.
    :param needs_file: nova-compute runs Nova's own driver, and only a file reports shares.
    """
    if not needs_file or not held or any(entry.shares is not None for entry in files.entries):
        return None
    name = files.root.name
    return Fault(
        files.folder,
        f"no file gives host {name} its shares, and servers hold {held} {VCPU_SHARES}:"
        " nova-compute does not start at its next restart (its log blames PCI resources)",
        "write the file first: cpu-tiers inventory show --connect qemu:///system --hostname"
        f" {name} -f provider-yaml --file {files.folder.rstrip('/')}/cpu-tiers.yaml",
    )


def _joined(files: ProviderFiles, other: ProviderEntry, entry: ProviderEntry) -> str:
    """Return the remedy for two entries of one provider."""
    ours, theirs = (entry, other) if entry.file in files.made else (other, entry)
    if ours.file in files.made and theirs.file in files.made:
        return f"remove {theirs.file}"
    if ours.shares is None:
        return f"write everything into a single entry of {ours.file}"
    return f"{merge_remedy(theirs, ours.shares)} Then remove {ours.file}."


def merge_remedy(entry: ProviderEntry, shares: Inventory) -> str:
    """Return how to write shares into an entry of another's file."""
    verb = "add to" if entry.shares is None else "replace in"
    fields = ", ".join(f"{name}: {value!r}" for name, value in shares.items())
    return (
        f"{verb} inventories: additional: of this entry of {entry.file} the line"
        f" - {VCPU_SHARES}: {{{fields}}}"
    ) + "."


def place_faults(files: ProviderFiles, generated: ProviderEntry) -> Iterator[Fault]:
    """Yield the reasons why an entry of cpu-tiers has no place beside the files of the site.

    Nothing is yielded for an entry with an equal inventory: see :func:`is_elsewhere`.
    """
    shares = generated.shares or {}
    entry = _hides(files, generated)
    if entry is None or entry.has_shares(shares):
        return
    effect = (
        'nova-compute would not start ("has multiple definitions")'
        if entry.key == generated.key
        else "nova-compute would ignore the shares without a log line"
    )
    has = f" with {entry.shares.get('total')} shares" if entry.shares is not None else ""
    yield Fault(
        entry.file,
        f"has an entry {entry.identification}{has}; beside a file with {generated.identification}"
        f" {effect}",
        f"write no second file: {merge_remedy(entry, shares)}"
        + (
            f" Remove {entry.file} instead if you have no use for it." * (entry.file in files.made)
        ),
    )


def is_elsewhere(files: ProviderFiles, generated: ProviderEntry) -> str | None:
    """Return the file that has the shares of an entry already; ``None`` if no file has them."""
    entry = _hides(files, generated)
    return entry.file if entry and entry.has_shares(generated.shares or {}) else None


def _hides(files: ProviderFiles, generated: ProviderEntry) -> ProviderEntry | None:
    """Return the entry that stops or hides an entry that cpu-tiers has made."""
    if generated.key == COMPUTE_NODE:
        return effective_entry(files)
    return next((entry for entry in files.entries if entry.key == generated.key), None)


def read_provider_files(
    folder: str, root: RootNames, *, without: Iterable[str] = ()
) -> ProviderFiles:
    """Return the files of a folder as nova-compute would read them.

    A folder that does not exist has no files.

    :param without: paths of files that are going to be replaced.
    """
    entries: list[ProviderEntry] = []
    made, unreadable = set[str](), list[Fault]()
    left_out = {os.path.realpath(path) for path in without}
    for path in sorted(Path(folder).glob(SHOWN)):
        if os.path.realpath(path) in left_out:
            continue
        try:
            text = read_text(path)
            entries += _entries(str(path), yaml.load(text, _BoundedLoader))  # noqa: S506  # a safe one
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            unreadable.append(_unreadable(path, error))
        else:
            made |= {str(path)} if is_made(text) else set()
    return ProviderFiles(
        folder=folder,
        root=root,
        entries=tuple(entries),
        made=frozenset(made),
        unreadable=tuple(unreadable),
    )


class _BoundedLoader(yaml.SafeLoader):  # type: ignore[misc]  # see the import of yaml
    """A safe loader whose values are no larger than a file may be."""

    def construct_document(self, node: Any) -> Any:
        if _size(node, {}) > _MOST_BYTES:
            raise ValueError("its aliases stand for too many values, or for themselves")
        try:
            return super().construct_document(node)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # PyYAML raises errors of all kinds for an odd value
            raise ValueError("a value does not fit its tag, such as !!int") from error


def _size(node: Any, known: dict[int, int]) -> int:
    """Return the number of values of a node, where each alias counts as what it stands for."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith((":int", ":float")) and len(node.value) > _MOST_DIGITS:
            raise ValueError(f"it has a number of more than {_MOST_DIGITS} characters")
        return 1
    if id(node) not in known:
        known[id(node)] = _MOST_BYTES + 1  # for an alias inside of its own node
        nodes = chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + sum(_size(each, known) for each in nodes)
    return known[id(node)]


def is_made(text: str) -> bool:
    """Tell whether cpu-tiers has made the text of a file."""
    return MARK in text[:1000]


def _unreadable(path: Path, error: Exception) -> Fault:
    # The text of the file may be a secret: what is readable for root is not for everybody.
    mark = getattr(error, "problem_mark", None)
    reason = f"no YAML in line {mark.line + 1}" if mark else getattr(error, "strerror", None)
    return Fault(
        str(path),
        f"nova-compute does not start with this file ({reason or str(error) or repr(error)})",
        "correct the file, or remove it",
    )


def read_text(path: Path) -> str:
    """Return the text of a regular file of at most 1 MiB.

    :raises OSError: the file cannot be read.
    :raises ValueError: the file is not such a file, or no text.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise ValueError(f"no regular file of at most {_MOST_BYTES} bytes")
        try:
            return file.read(_MOST_BYTES).decode()
        except UnicodeDecodeError as error:
            raise ValueError("no text in UTF-8") from error


def _entries(path: str, document: Any) -> Iterator[ProviderEntry]:
    """Yield the entries of a document.

    :raises ValueError: Nova refuses the document.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it is empty, or no mapping with meta and providers")
    version = _mapping(document.get("meta"), "meta").get("schema_version")
    if not isinstance(version, str) or not version.startswith("1."):
        raise ValueError("meta: schema_version is not '1.0'")
    providers = document.get("providers", [])
    if not isinstance(providers, list):
        raise ValueError("providers is no list")
    for provider in providers:
        given = _mapping(provider, "a provider").get("identification")
        identification = _mapping(given, "the identification of a provider")
        if len(identification) != 1 or not identification.keys() <= {"uuid", "name"}:
            raise ValueError("identification needs either uuid or name")
        ((by, key),) = identification.items()
        if not isinstance(key, str):
            raise ValueError(f"the {by} of a provider is no text")
        yield ProviderEntry(file=path, key=key, is_uuid=by == "uuid", shares=_shares(provider))


def _shares(provider: Mapping[str, Any]) -> Inventory | None:
    additional = _mapping(provider.get("inventories", {}), "inventories").get("additional", [])
    shares: Inventory | None = None
    for item in additional if isinstance(additional, list) else ():
        fields = _mapping(item, "an inventory").get(VCPU_SHARES)
        shares = shares if fields is None else _mapping(fields, VCPU_SHARES)
    if not all(type(value) in (int, float) for value in (shares or {}).values()):
        raise ValueError(f"a field of {VCPU_SHARES} is no number")
    return shares


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is no mapping")
    return value
