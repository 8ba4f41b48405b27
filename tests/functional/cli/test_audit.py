"""``host audit`` where there is nothing to audit; real guests are in tests/libvirt."""

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("options", "message", "status"),
    [
        (("--connect", "qemu+ssh://elsewhere/system"), "run the command on the compute host", 1),
        (("--tier", "gold"), "--tier: got 'gold'", 1),
        (("--interval", "-1"), "give 0 to 3600 seconds", 2),
        (("--interval", "long"), "give 0 to 3600 seconds", 2),
        (("--ignore", "everything"), "invalid choice: 'everything'", 2),
        (("--connect", "qemu+unix:///system?socket=/nowhere"), "libvirt", 1),
    ],
)
def test_bad_input(run: Command, options: tuple[str, ...], message: str, status: int) -> None:
    # Without a file the audit reads the files of a nova-compute that runs on this machine.
    result = run("--config-file", "/dev/null", "host", "audit", *options, status=status)
    assert message in result.stderr
    assert result.stdout == ""
