"""Every kind of finding has a meaning, a remedy and a row in docs/admin/audit.rst."""

import re
from pathlib import Path

import pytest

from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.tiers.ladder import Step

PAGE = Path(__file__).parents[3] / "docs" / "admin" / "audit.rst"


def test_every_finding_is_explained() -> None:
    explained = re.findall(r"^   \* - ``([a-z-]+)``$", PAGE.read_text(), re.MULTILINE)
    assert explained == [kind.value for kind in Kind]
    assert all(kind.means and kind.do for kind in Kind)


OF_LATER_STEPS = (
    *("quota:cpu_shares_multiplier", "least_weight_without_tier", "report_vcpu_shares"),
    *("query_placement_for", "reshape"),
)
"""What Nova's own driver and a stock nova-scheduler do not know."""


@pytest.mark.parametrize("step", [Step.LOOK, Step.NOVAS_DRIVER, Step.WEIGHER])
@pytest.mark.parametrize("kind", Kind, ids=lambda kind: str(kind.value))
def test_a_remedy_on_a_host_with_novas_own_driver(kind: Kind, step: Step) -> None:
    remedy = Finding(kind=kind, where="guest a", found="").remedy(step)
    assert [word for word in OF_LATER_STEPS if word in remedy] == []


def test_a_remedy_on_a_host_with_the_driver() -> None:
    finding = Finding(kind=Kind.UNTIERED, where="guest a", found="")
    assert "a flavor with quota:cpu_shares_multiplier" in finding.remedy(Step.DRIVER)
    assert "quota:cpu_shares and its pair" in finding.remedy(Step.NOVAS_DRIVER)
    own = Finding(kind=Kind.PROVIDER_FILE, where="/f", found="", do="remove a.yaml")
    assert own.remedy(Step.NOVAS_DRIVER) == "remove a.yaml"
