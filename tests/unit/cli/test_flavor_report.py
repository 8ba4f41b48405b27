import pytest

from cpu_tiers.tools.cloud.status import inspect
from cpu_tiers.tools.nova import nova_command
from cpu_tiers.tools.nova.nova_command import NovaMissing


def test_a_missing_nova_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nova_command, "find_spec", lambda name: None)
    with pytest.raises(NovaMissing, match="needs Nova: install cpu-tiers in the Python that has"):
        inspect([], [])
