"""docs/reference/seams.rst, and the fingerprints that are written with the page."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from cpu_tiers.nova.fingerprints import known
from cpu_tiers.nova.seams import Seam
from tests.nova.seams_page import PAGE, SERVICES, TEXTS, USES, compared, name_of, page
from tests.nova.wrapping import all_seams

RELEASES = ["31.3.1", "32.2.1", "33.0.2", "34.0.0"]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: tox -e seams"


@pytest.mark.parametrize("seam", sorted(all_seams(), key=str), ids=str)
def test_a_seam_has_a_reason_an_unseen_breach_and_an_end(seam: Seam) -> None:
    texts = TEXTS[name_of(seam)]
    for text in (texts["why"], texts["unseen"]):
        assert text.endswith(".")
    assert ("missing_in" in texts) == ("ends_with" in texts) == bool(seam.wrap)
    assert texts.get("missing_in") in (None, "Nova", "Placement", "the provider tree")


def test_each_text_belongs_to_a_seam_or_to_an_attribute() -> None:
    assert TEXTS.keys() == {name_of(seam) for seam in all_seams()}
    features = [feature for service in SERVICES for feature in service.features]
    assert USES.keys() == {str(each) for feature in features for each in feature.attributes}


def test_each_function_has_a_fingerprint_of_each_release() -> None:
    assert {name: list(releases) for name, releases in known().items()} == {
        str(seam): RELEASES for seam in all_seams()
    }
    assert version("nova") in RELEASES


def test_what_a_next_release_changes_is_told(tmp_path: Path) -> None:
    """It moves the utils of the scheduler, and a claim has another parameter."""
    with ZipFile(tmp_path / "nova-99.0.0-py3-none-any.whl", "w") as wheel:
        for module in {seam.module for seam in all_seams()} - {"nova.scheduler.utils"}:
            spec = find_spec(module)
            assert spec is not None
            assert spec.origin is not None
            text = Path(spec.origin).read_text()
            if module == "nova.scheduler.client.report":
                head, mark, rest = text.partition("    def claim_resources(")
                text = head + mark + rest.replace("):", ", added=None):", 1)
            wheel.writestr(f"{module.replace('.', '/')}.py", text)
    head, *lines = compared(Path(str(wheel.filename)))
    assert head.startswith("nova-99.0.0-py3-none-any.whl")
    told = {name: release for release, name in map(str.split, lines)}
    claim = "nova.scheduler.client.report.SchedulerReportClient.claim_resources"
    assert told.pop(claim) == "none"
    moved = {name for name in told if name.startswith("nova.scheduler.utils.")}
    assert moved
    assert {told.pop(name) for name in moved} == {"missing"}
    # 34.0.0 where a later release has the same code, such as 33.0.2 of a function of both.
    assert min(told.values()) >= version("nova")
