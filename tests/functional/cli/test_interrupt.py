"""Ctrl-C or SIGTERM in the middle of writing: how far it came, and the exit status."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.plan_file import plan_document

Interrupt = Callable[..., str]
Signals = tuple[signal.Signals, ...]

TWICE = (signal.SIGTERM, signal.SIGTERM)
"""What timeout(1) sends: one signal to the process, and the other to its process group."""


def _as_in_a_terminal() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts jobs in the background deaf


@pytest.fixture
def interrupt(
    url: str,
    faults: list[tuple[str, str]],
    seen: list[str],
    nova_conf: Callable[..., Path],
) -> Interrupt:
    """Run a command, send signals while it waits for an answer, return what it says."""
    conf = nova_conf(auth_type="admin_token", endpoint=url, token="admin", timeout=60)

    def interrupt(
        *arguments: object, waits_for: str, by: Signals = (signal.SIGINT,), status: int = 130
    ) -> str:
        faults.append((waits_for, "silence"))
        command = [Path(sys.executable).with_name("cpu-tiers"), "--config-file", conf, *arguments]
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_as_in_a_terminal,  # nothing that needs a lock
        )
        until = time.monotonic() + 60
        while faults and time.monotonic() < until:
            time.sleep(0.05)
        for number in by:
            process.send_signal(number)
        out, error = process.communicate(timeout=30)
        assert process.returncode == status, error
        assert "Traceback" not in error
        assert out == ""
        return error

    return interrupt


def test_sync(interrupt: Interrupt, capabilities: str) -> None:
    arguments = ("inventory", "sync", "--capabilities", capabilities, "--hostname", "h")
    sync = (*arguments, "--disk-gb", "5")
    error = interrupt(*sync, waits_for="PUT .*/inventories")
    assert error.splitlines()[:2] == [
        "Interrupted; run the command again to finish.",
        "written: h: provider absent -> present",
    ]
    assert "perhaps written: h: VCPU absent -> " in error
    assert "\nnot written" not in error  # all of a provider's inventories go together
    error = interrupt(*sync, waits_for="GET .*/inventories")
    assert error == "Interrupted; run the command again to finish.\nNothing was written.\n"


def test_apply(
    interrupt: Interrupt, capabilities: str, run: Callable[..., Any], save: Any
) -> None:
    conf = save("[compute]\nenable_numa_reporting_to_placement = true\n", "numa.conf")
    plan = save(plan_document("h", ()), "plan.json")
    host = ("--capabilities", capabilities)
    run("inventory", "sync", *host, "--hostname", "h", "--disk-gb", "5", "--config-file",
        Path(conf).with_name("nova.conf"))  # fmt: skip
    apply = ("--config-file", conf, "reshape", "apply", plan, *host)
    error = interrupt(*apply, waits_for="POST /reshaper", by=TWICE, status=143)
    assert "\nwritten: h_NUMA0: provider absent -> under h\n" in error
    assert "\nperhaps written: h: VCPU total 64" in error
    assert "\nnot written" not in error


def test_placement_check(interrupt: Interrupt, client: PlacementClient) -> None:
    """The provider and the allocations of the claims are deleted."""
    error = interrupt("placement", "check", "--claimers", "2", waits_for="GET .*/usages")
    assert error == "Interrupted.\n"
    assert client.providers() == ()
