"""Whatever fails while a host is looked for is NoValidHost, which nova-conductor handles."""

import pytest
from nova import exception

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.nova.scheduler.refusal import refusing


@pytest.mark.parametrize(
    ("error", "reason", "lines"),
    [
        pytest.param(CpuTiersError("no such tier"), "no such tier", 0, id="the user's mistake"),
        pytest.param(KeyError("seat"), "failure of a test: KeyError", 1, id="a programming error"),
        pytest.param(exception.NoValidHost(reason="full"), "full", 0, id="Nova's own"),
    ],
)
def test_it_is_no_valid_host(
    error: Exception, reason: str, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(exception.NoValidHost, match=reason), refusing("a test"):
        raise error
    assert len(caplog.messages) == lines


def test_another_exception_of_nova_is_not_changed() -> None:
    with pytest.raises(exception.InstanceNotFound), refusing("a test"):
        raise exception.InstanceNotFound(instance_id="s")
