"""The names that others import, :mod:`cpu_tiers.api`."""

import subprocess
import sys

import pytest

import cpu_tiers.api
from tests.api_signatures import FILE, entries

OF_NOVA = [name for name in cpu_tiers.api.__all__ if name.startswith("to_")]
CHANGED = (
    "The promise to others has changed. If it has to: write a release note, and run"
    " python -m tests.api_signatures in the environment of tox -e nova."
)


def documented() -> dict[str, str]:
    """Return the entries of the file by the name."""
    entry, read = "", {}
    for line in FILE.read_text().splitlines():
        entry = f"{entry}\n{line}" if line.startswith(" ") else line
        read[entry.partition("\n")[0].partition("(")[0]] = entry
    return read


def test_the_file_has_each_name() -> None:
    assert [*documented()] == cpu_tiers.api.__all__


@pytest.mark.parametrize("name", sorted({*cpu_tiers.api.__all__} - {*OF_NOVA}))
def test_a_signature_is_as_documented(name: str) -> None:
    assert [*entries([name])] == [documented()[name]], CHANGED


def test_another_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trnslate'"):
        cpu_tiers.api.trnslate  # noqa: B018  # the access raises


def test_the_import_needs_no_other_distribution() -> None:
    """A plugin costs nova-scheduler, which has os-resource-classes itself, nothing else."""
    program = (
        "import sys; before = {*sys.modules}; import cpu_tiers.api;"
        "new = {each.partition('.')[0] for each in {*sys.modules} - before};"
        "print(*sorted(new - sys.stdlib_module_names))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["cpu_tiers", "os_resource_classes"]
