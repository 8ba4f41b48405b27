"""What nova-compute makes of its provider configuration files at its next start.

The rules are those of Nova 34: ``provider_config.get_provider_configs`` and
``ResourceTracker._merge_provider_configs``.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.errors import Fault
from cpu_tiers.tools.frame.provider_files import (
    COMPUTE_NODE,
    ProviderEntry,
    ProviderFiles,
    RootNames,
    effective_entry,
    lost_file,
    read_provider_files,
    traps,
)

UUID = "6b3ae1d2-9c40-4f5e-8a17-0d2c5b7e9f31"
ROOT = RootNames(name="one", uuid=UUID)
SHARES = {"total": 800, "allocation_ratio": 2.0}


def entry(file: str, key: str, shares: dict[str, Any] | None = None) -> ProviderEntry:
    is_uuid = key in (COMPUTE_NODE, UUID)
    return ProviderEntry(file=file, key=key, is_uuid=is_uuid, shares=shares)


def files(*entries: ProviderEntry) -> ProviderFiles:
    return ProviderFiles(folder="/f", root=ROOT, entries=entries, made=frozenset({"ours", "copy"}))


OURS = entry("ours", COMPUTE_NODE, SHARES)
LINE = "- CUSTOM_VCPU_SHARES: {total: 800, allocation_ratio: 2.0}"


@pytest.mark.parametrize(
    ("entries", "given", "allowed"),
    [
        pytest.param(
            [OURS, entry("site", COMPUTE_NODE)],
            'both have the provider uuid: $COMPUTE_NODE: nova-compute does not start ("has',
            f"add to inventories: additional: of this entry of site the line {LINE}. Then remove",
            id="the same identification",
        ),
        pytest.param(
            [OURS, entry("site", "one")],
            "nova-compute uses the entry name: one, and ignores the shares of uuid: $COMPUTE_NODE",
            f"of site the line {LINE}. Then remove ours.",
            id="the name of the host hides the shares",
        ),
        pytest.param(
            [OURS, entry("site", UUID)],
            f"nova-compute uses the entry uuid: {UUID}, and ignores the shares",
            f"of site the line {LINE}. Then remove ours.",
            id="the uuid of the host hides the shares",
        ),
        pytest.param(
            [OURS, entry("copy", COMPUTE_NODE, SHARES)],
            "both have the provider uuid: $COMPUTE_NODE",
            "remove ours",
            id="the file of cpu-tiers twice",
        ),
        pytest.param(
            [entry("site", "gpu"), entry("site", "gpu")],
            "both have the provider name: gpu",
            "write everything into a single entry of site",
            id="another provider twice, without shares",
        ),
        pytest.param(
            [entry("site", "one", SHARES), entry("site", UUID)],
            "host one has an entry by its name and another by its uuid",
            "write everything into a single entry",
            id="the host by its name and by its uuid",
        ),
    ],
)
def test_traps(entries: list[ProviderEntry], given: str, allowed: str) -> None:
    (fault,) = traps(files(*entries))
    assert fault.given.startswith(given)
    assert allowed in fault.allowed


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="no file"),
        pytest.param([OURS], id="the file of cpu-tiers alone"),
        pytest.param([OURS, entry("site", "two")], id="the name of another host"),
        pytest.param([OURS, entry("site", "one_gpu")], id="a provider below the host"),
        pytest.param([entry("site", COMPUTE_NODE), entry("site", "one", SHARES)], id="merged"),
    ],
)
def test_no_trap(entries: list[ProviderEntry]) -> None:
    assert not list(traps(files(*entries)))


META = "meta: {schema_version: '1.0'}\n"
GROWTH = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
"""A few hundred bytes that stand for 10^10 values."""
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9)
)
OF_ALIAS = "providers: [{{identification: {{uuid: {}}}, inventories: {{additional: [{}]}}}}]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x: !!int ''", "does not fit its tag"),
        ("x: !!float ''", "does not fit its tag"),
        ("x: !!bool maybe", "does not fit its tag"),
        ("x: !!timestamp x", "does not fit its tag"),
        ("x: !!int 0x", "does not fit its tag"),
        ("x: 2001-13-45", "does not fit its tag"),
        ("x: 1" + ":1" * 200_000, "a number of more than 100 characters"),
        ("x: 0x" + "f" * 900_000, "a number of more than 100 characters"),
        ("x: " + "9" * 5_000, "a number of more than 100 characters"),
        ("x: &a {<<: *a}", "aliases stand for too many values, or for themselves"),
        ("providers: &p [*p]", "aliases stand for too many values"),
        (GROWTH + OF_ALIAS.format("*a9", ""), "aliases stand for too many values"),
        (MERGES, "aliases stand for too many values"),
        (OF_ALIAS.format("1", ""), "the uuid of a provider is no text"),
        (OF_ALIAS.format("a", "{CUSTOM_VCPU_SHARES: {total: null}}"), "is no number"),
        ("x: " + "[" * 10_000, "recursion"),
        ("? [a]\n: b", "no YAML in line 2"),
    ],
)
def test_a_file_that_no_parser_should_read_is_named(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(META + text)
    start = time.process_time()
    (fault,) = traps(read_provider_files(str(tmp_path), ROOT))
    assert time.process_time() - start < 10
    assert fault.where == str(path)
    assert reason in fault.given


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    """Nova: glob.glob, which leaves out names that begin with a point."""
    (tmp_path / ".ours.yaml").write_text("no mapping")
    (tmp_path / "ours.yaml.bak").write_text("no mapping")
    assert read_provider_files(str(tmp_path), ROOT) == ProviderFiles(
        folder=str(tmp_path), root=ROOT, entries=(), made=frozenset()
    )


def test_a_file_may_have_aliases(tmp_path: Path) -> None:
    shares = "&s {CUSTOM_VCPU_SHARES: &i {total: 800, allocation_ratio: 2.0}}"
    other = "{identification: {name: b}, inventories: {additional: [*s, {CUSTOM_A: {<<: *i}}]}}"
    text = META + OF_ALIAS.format("a", shares)[:-1] + f", {other}]"
    (tmp_path / "site.yaml").write_text(text)
    found = read_provider_files(str(tmp_path), ROOT)
    assert [each.shares for each in found.entries] == [SHARES, SHARES]


def test_a_file_that_nova_refuses_is_a_trap() -> None:
    fault = Fault("bad.yaml", "nova-compute does not start with this file", "remove it")
    assert [fault] == list(traps(ProviderFiles(folder="/f", root=ROOT, unreadable=(fault,))))


@pytest.mark.parametrize(
    ("entries", "held", "driver", "is_lost"),
    [
        pytest.param([], 200, False, True, id="no file at all"),
        pytest.param([entry("site", "one")], 200, False, True, id="a file without shares"),
        pytest.param([], 0, False, False, id="no server holds shares"),
        pytest.param([], 200, True, False, id="the driver reports the shares"),
        pytest.param([OURS], 200, False, False, id="the file"),
    ],
)
def test_a_lost_file(entries: list[ProviderEntry], held: int, driver: bool, is_lost: bool) -> None:
    fault = lost_file(files(*entries), held=held, needs_file=not driver)
    assert is_lost == (fault is not None)
    if fault:
        assert "servers hold 200 CUSTOM_VCPU_SHARES: nova-compute does not start" in fault.given
        assert fault.allowed.endswith("--hostname one -f provider-yaml --file /f/cpu-tiers.yaml")


@pytest.mark.parametrize(
    ("entries", "file"),
    [
        pytest.param([OURS], "ours", id="$COMPUTE_NODE is every host"),
        pytest.param([OURS, entry("site", "one")], "site", id="the name comes first"),
        pytest.param([entry("site", "two")], None, id="another host"),
    ],
)
def test_the_entry_of_a_host(entries: list[ProviderEntry], file: str | None) -> None:
    effective = effective_entry(files(*entries))
    assert file == (effective.file if effective else None)
