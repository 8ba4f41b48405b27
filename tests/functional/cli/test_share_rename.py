"""Both names of VCPU_SHARES in a Placement whose os-resource-classes contains VCPU_SHARES."""

from pathlib import Path

from tests.later_libraries import run_later


def test_the_day_of_the_standard_name(tmp_path: Path) -> None:
    run_later(tmp_path, "tests/functional/cli/share_names.py")
