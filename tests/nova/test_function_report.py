"""``cpu-tiers-status upgrade check`` of the functions of the installed Nova."""

import pytest
from nova.scheduler.host_manager import HostState

from cpu_tiers.tools.cloud.status import check_functions
from tests.nova.wrapping import wrapped


def test_the_installed_nova_fits() -> None:
    assert list(check_functions()) == []
    assert wrapped() == []


def test_features_that_a_nova_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(HostState, "consume_from_request")
    (line,) = check_functions()
    assert "HostState.consume_from_request was expected with the parameters self, spec" in line
    assert line.endswith("Features: weigher of nova-scheduler, NUMA query of nova-scheduler")
