"""Nova and Placement with the libraries in which the names of the specs are standard."""

from pathlib import Path

from tests.later_libraries import run_later


def test_a_cloud_on_the_day_of_the_standard_names(tmp_path: Path) -> None:
    run_later(tmp_path, "tests/nova/standard_names.py")
