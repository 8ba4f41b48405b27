"""The samples of Nova's documentation for Nova's own tests."""

import tarfile
from pathlib import Path

from tests.ledger import samples

SAMPLE = "doc/api_samples/servers/server-get-resp.json"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_modules_that_read_samples() -> None:
    tests = "nova.tests.functional"
    assert samples.are_read_by([f"{tests}.api_sample_tests.test_servers"])
    assert samples.are_read_by([f"{tests}.test_servers", f"{tests}.notification_sample_tests.m"])
    assert not samples.are_read_by([f"{tests}.test_servers", "nova.tests.unit.test_hardware"])


def test_samples_and_nothing_else_are_unpacked(tmp_path: Path) -> None:
    source = tmp_path / "nova-34.0.0"
    for name in (SAMPLE, "doc/notification_samples/a.json", "doc/source/index.rst", "nova/a.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    with tarfile.open(tmp_path / "nova.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    folder = tmp_path / "samples"
    samples.unpack(tmp_path / "nova.tar.gz", folder)
    assert files(folder) == {SAMPLE, "doc/notification_samples/a.json"}
    assert (folder / SAMPLE).read_text() == SAMPLE


def test_each_nova_gets_the_samples_of_the_version(tmp_path: Path) -> None:
    """Of another version of Nova as well: its link is replaced. Nothing is downloaded."""
    novas = [tmp_path / name / "site-packages/nova" for name in ("stock", "ours")]
    for nova in novas:
        nova.mkdir(parents=True)
    for version in ("33.0.2", "34.0.0"):
        folder = tmp_path / f"samples-{version}"
        (folder / SAMPLE).parent.mkdir(parents=True)
        (folder / SAMPLE).write_text(version)
        samples.put(version, folder, novas)
        assert [(nova.parent / SAMPLE).read_text() for nova in novas] == [version] * 2
