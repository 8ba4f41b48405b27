"""``host watch`` as a program: it answers, and it ends by a signal with a message."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest

Command = Callable[..., Any]

# libvirt is not here; the machine is the machine of the test, and has no guests.
PROGRAM = """
import sys
from cpu_tiers.tools.host import watch
from cpu_tiers.tools.frame.app import main

watch.read_capabilities = lambda _: (
    b"<capabilities><host><cpu><arch>x86_64</arch></cpu><topology><cells num='1'><cell id='0'>"
    b"<memory unit='KiB'>1048576</memory><cpus num='1'><cpu id='0'/></cpus></cell></cells>"
    b"</topology></host></capabilities>"
)
watch.read_domains = lambda *_, **__: []
sys.exit(main(["--config-file", "/dev/null", "host", "watch", "--listen", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_watch(number: signal.Signals, status: int) -> None:
    command = [sys.executable, "-c", PROGRAM, "127.0.0.1:0"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # as in a terminal
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "configuration: /dev/null\n"
        match = re.fullmatch(r"Guests: 0; metrics: (http://\S+)\n", process.stderr.readline())
        assert match
        with urlopen(match[1], timeout=30) as answer:  # noqa: S310  # the URL of the program
            metrics = answer.read().decode()
        assert "\ncpu_tiers_watch_guests 0.0\n" in metrics
        process.send_signal(number)
        assert process.wait(30) == status
        message = (
            r"(nova\.conf alone says what is sold: .*\n)?"
            r"The watch has ended after \d+ seconds and 1 readings\.\n"
        )
        assert re.fullmatch(message, process.stderr.read())


@pytest.mark.parametrize(
    ("options", "message", "status"),
    [
        (("--connect", "qemu+ssh://elsewhere/system"), "run the command on the compute host", 1),
        (("--tier", "gold"), "--tier: got 'gold'", 1),
        (("--interval", "0.5"), "give 1 to 3600 seconds", 2),
        (("--interval", "nan"), "give 1 to 3600 seconds", 2),
        (("--listen", "9777"), "give ADDRESS:PORT, such as", 2),
        (("--listen", "127.0.0.1:0", "--connect", "qemu+unix:///system?socket=/no"), "libvirt", 1),
    ],
)
def test_bad_input(run: Command, options: tuple[str, ...], message: str, status: int) -> None:
    result = run("--config-file", "/dev/null", "host", "watch", *options, status=status)
    assert message in result.stderr
    assert result.stdout == ""
