"""The samples of Nova's documentation, with which Nova's tests compare answers and notifications.

Only Nova's source distribution has them. Without them, each of these tests fails at its first
comparison, in a stock Nova as well.
"""

import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("doc/api_samples/", "doc/notification_samples/")


def are_read_by(modules: Iterable[str]) -> bool:
    """Tell whether one of the modules of tests reads samples."""
    return any("_sample_tests." in module for module in modules)


def put(nova: str, folder: Path, novas: Iterable[Path]) -> None:
    """Put the samples where Nova's tests look for them: beside the package ``nova``.

    :param nova: the version of Nova.
    :param folder: keeps the samples of this version.
    :param novas: the folders of the installed packages.
    :raises subprocess.CalledProcessError: pip cannot download the source distribution.
    """
    if not folder.exists():
        _download(nova, folder)
    for package in novas:
        link = package.with_name("doc")
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "doc")


def _download(nova: str, folder: Path) -> None:
    started = folder.with_name(f"{folder.name}.started")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "nova", "--dest", str(started), f"nova=={nova}"]
    subprocess.run(command, check=True)
    unpack(started / f"nova-{nova}.tar.gz", started)
    started.rename(folder)


def unpack(distribution: Path, folder: Path) -> None:
    """Write the samples of a source distribution to a folder, as ``doc/…``."""
    with tarfile.open(distribution) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if path.startswith(FOLDERS) and (content := archive.extractfile(member)):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content.read())
