import pytest

from cpu_tiers.cli import nova_command
from cpu_tiers.cli.flavor_report import inspect
from cpu_tiers.cli.nova_command import NovaMissing
from cpu_tiers.cli.progress import ProgressLine


def test_progress_is_told_every_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    progress = ProgressLine()
    for now in (101.9, 102.0, 103.9, 104.1):  # monotonic() returns it
        progress.tell(f"at {now}")
    assert capsys.readouterr() == ("", "at 102.0\nat 104.1\n")


def test_a_missing_nova_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nova_command, "find_spec", lambda name: None)
    with pytest.raises(NovaMissing, match="needs Nova: install cpu-tiers in the Python that has"):
        inspect([], [])
