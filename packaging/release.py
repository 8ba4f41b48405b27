"""What ``tox -e release`` adds to what its tools make: docs/contributor/release.rst."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "packaging" / "built"


def write_version() -> None:
    """Write our own version into the list of components, which reads no dynamic version."""
    command = [sys.executable, "-m", "hatchling", "version"]
    # A fixed command of this interpreter.
    version = subprocess.check_output(command, cwd=ROOT, text=True)  # noqa: S603
    path = BUILT / "cpu-tiers.cdx.json"
    document = json.loads(path.read_text())
    document["metadata"]["component"]["version"] = version.strip()
    path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")


def write_checksums() -> None:
    """Write the SHA-256 of each file of ``dist``, as ``sha256sum --check`` reads it."""
    files = sorted((ROOT / "dist").iterdir())
    lines = (f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files)
    (BUILT / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    {"version": write_version, "checksums": write_checksums}[sys.argv[1]]()
