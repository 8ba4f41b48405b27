"""docs/reference/seams.rst, and the fingerprints that are written with the page."""

from importlib.metadata import version

import pytest

from cpu_tiers.nova.fingerprints import known
from cpu_tiers.nova.seams import Seam
from tests.nova.seams_page import PAGE, SERVICES, TEXTS, USES, name_of, page
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
