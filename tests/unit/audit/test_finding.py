"""Every kind of finding has a meaning, a remedy and a row in docs/admin/audit.rst."""

import re
from pathlib import Path

from cpu_tiers.tools.host.checks.evidence import Kind

PAGE = Path(__file__).parents[3] / "docs" / "admin" / "audit.rst"


def test_every_finding_is_explained() -> None:
    explained = re.findall(r"^   \* - ``([a-z-]+)``$", PAGE.read_text(), re.MULTILINE)
    assert explained == [kind.value for kind in Kind]
    assert all(kind.means and kind.do for kind in Kind)
