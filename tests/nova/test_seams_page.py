"""docs/seams.rst, and the fingerprints that are written with the page."""

from importlib.metadata import version

import pytest

from cpu_tiers.nova.fingerprints import known
from cpu_tiers.nova.seams import Seam
from tests.nova.seam_ends import ENDS
from tests.nova.seams_page import PAGE, page, wrapper_of
from tests.nova.wrapping import all_seams

RELEASES = ["31.3.1", "32.2.1", "33.0.2", "34.0.0"]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: tox -e seams"


@pytest.mark.parametrize("seam", sorted(all_seams(), key=str), ids=str)
def test_a_seam_says_why_and_what_breaks_unseen(seam: Seam) -> None:
    for text in (seam.why, seam.unseen):
        assert text.endswith(".")


def test_each_wrapper_says_what_would_end_it() -> None:
    assert {wrapper_of(seam) for seam in all_seams() if seam.wrap} == ENDS.keys()


def test_each_function_has_a_fingerprint_of_each_release() -> None:
    assert {name: list(releases) for name, releases in known().items()} == {
        str(seam): RELEASES for seam in all_seams()
    }
    assert version("nova") in RELEASES
