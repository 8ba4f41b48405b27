"""What ``tox -e release`` has made in ``packaging/built``, into the wheel: docs/release.rst."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ReleaseFiles(BuildHookInterface[Any]):
    """Add the manual pages, and the software bill of materials (PEP 770)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files that exist; a wheel of a checkout has none."""
        built = Path(self.root, "packaging", "built")
        for page in sorted(built.glob("*.1")):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"
        build_data["sbom_files"] += [str(path) for path in sorted(built.glob("*.cdx.json"))]
