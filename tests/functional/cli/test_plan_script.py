"""The script of a plan: sh and the real openstack client, over a Nova that fails in each way."""

import json
import os
import socketserver
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cpu_tiers.tools.plan import script as script_module
from cpu_tiers.tools.plan.script import script
from tests.functional.cli.fork_server import ForkServer
from tests.functional.cli.nova_that_fails import Nova, Server, nova_with

OPENSTACK = Path(sys.executable).with_name("openstack")
pytestmark = pytest.mark.skipif(
    not OPENSTACK.exists(), reason="python-openstackclient is not installed"
)

SETTINGS = {
    "OS_USERNAME": "u",
    "OS_PASSWORD": "p",
    "OS_PROJECT_NAME": "p",
    "OS_REGION_NAME": "R",
    "OS_USER_DOMAIN_ID": "default",
    "OS_PROJECT_DOMAIN_ID": "default",
}
ENDLESS = ("never ends", "is not confirmed", "is lost")
SHIM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as of_server:
    of_server.connect({path!r})
    of_server.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    out, error, status = json.loads(of_server.makefile().read())
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(status)
"""
"""Runs the client in a fork of a process that has imported it: an import takes two seconds."""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run the script of moves over a Nova."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            arguments = json.loads(self.rfile.readline())
            done = fork_server.run([str(OPENSTACK), *arguments], tmp_path)
            answer = [done.stdout, done.stderr, done.returncode]
            self.wfile.write(json.dumps(answer).encode())

    path = str(tmp_path / "client")
    shim = tmp_path / "openstack"
    shim.write_text(SHIM.format(python=sys.executable, path=path))
    shim.chmod(0o755)
    for name in [*os.environ]:
        if name.startswith("OS_"):
            monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)

    def run(
        nova: Nova,
        moves: Sequence[Mapping[str, Any]],
        *arguments: str,
        disable: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("OS_AUTH_URL", f"{nova.url}/v3")
        return subprocess.run(
            ["sh", "-s", "--", *arguments],
            input=script("The verdict.", moves, disable, rate=100),
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "POLL": "0.2"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    with socketserver.UnixStreamServer(path, Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield run
        server.shutdown()


def move(server: str, **changes: object) -> dict[str, Any]:
    """Return a move from cn0 to cn1."""
    usual = {"server": server, "source": "cn0", "host": "cn1", "after": [], "live": True}
    as_usual = {"named": True, "settles": False}
    return {**usual, **as_usual, "memory_mb": 64, "disk_gb": 0, **changes}


def test_all_is_done_in_order_and_only_once(run: Run) -> None:
    servers = {"-web": Server(), "off": Server(state="SHUTOFF"), "still": Server(state="PAUSED")}
    moves = [move("-web"), move("off", live=False, after=[1]), move("still")]
    with nova_with(servers) as nova:
        done = run(nova, moves, disable=["cn0"])
        assert done.returncode == 0, done.stderr
        expected = [
            *(("cn0", "disabled"), ("-web", "os-migrateLive")),
            *(("off", "migrate"), ("off", "confirmResize"), ("still", "os-migrateLive")),
        ]
        assert nova.acts == expected
        again = run(nova, moves)
        assert again.returncode == 0
        assert nova.acts == expected  # nothing more
    assert "Step 2 is done: server off is on cn1 (SHUTOFF)." in done.stderr


@pytest.mark.parametrize(
    ("server", "is_live", "words"),
    [
        (Server("fails"), True, "ended, and the server is on cn0 (ACTIVE), not on cn1"),
        (Server("fails", "PAUSED"), True, "ended, and the server is on cn0 (PAUSED), not on cn1"),
        (Server("fails", "SHUTOFF"), False, "ended, and the server is on cn0 (SHUTOFF)"),
        (Server("errs"), True, "it is on cn0 in state ERROR"),
        (Server("never ends"), True, "not done after 10 seconds: it is on cn0 (MIGRATING, migr"),
        (Server("never ends", "SHUTOFF"), False, "it is on cn0 (RESIZE, resize_prep), and is"),
        (Server("is not confirmed", "SHUTOFF"), False, "it is on cn1 (VERIFY_RESIZE), and is to"),
        (Server("is refused"), True, "Nova refuses to migrate it"),
        (Server("is lost"), True, "it is on an unknown host"),
        (Server("goes elsewhere"), True, "the server is on cn9 (ACTIVE), not on cn1"),
        (Server(host="cn7"), True, "it is on cn7, and the plan has it on cn0: plan again"),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_a_failure(
    run: Run, server: Server, is_live: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # a table
    if server.kind in ENDLESS:  # 8 seconds and those of the copy, 2 x 64 MiB / 100
        monkeypatch.setattr(script_module, "LEAST_SECONDS", 8)
    with nova_with({"web": server, "next": Server()}) as nova:
        done = run(nova, [move("web", live=is_live), move("next")])
        assert done.returncode == 1, done.stderr
        assert ("next", "os-migrateLive") not in nova.acts
    assert "Step 1, server web: " in done.stderr
    assert words in done.stderr
    if server.kind == "errs":
        assert "the disk is full" in done.stderr
    if server.kind != "is lost":
        assert "No valid host was found" in done.stderr  # of the last action
    assert "a name; reboot" not in done.stderr


def test_steps_that_do_not_wait_run_together(run: Run) -> None:
    uuids = [f"web{number}" for number in range(4)]
    with nova_with({uuid: Server() for uuid in uuids}) as nova:
        nova.together = 3  # with fewer at a time, none would end
        moves = [move(uuid, after=[1] if uuid == "web3" else []) for uuid in uuids]
        done = run(nova, moves, "--parallel", "3")
        assert done.returncode == 0, done.stderr
        assert run(nova, [], "--parallel", "x").returncode == 2


def test_after_a_failure_nothing_begins_and_what_runs_ends(run: Run) -> None:
    servers = {"a": Server("fails"), "b": Server(), "c": Server()}
    with nova_with(servers) as nova:
        done = run(nova, [move("a"), move("b"), move("c", after=[1])], "--parallel=2")
        assert done.returncode == 1
        assert ("c", "os-migrateLive") not in nova.acts
    assert "server b is on cn1 (ACTIVE)" in done.stderr


def test_a_server_with_a_place_between(run: Run) -> None:
    moves = [move("web", host="cn2"), move("web", source="cn2", after=[1])]
    with nova_with({"web": Server()}) as nova:
        assert run(nova, moves).returncode == 0
        assert len(nova.acts) == 2
        assert run(nova, moves).returncode == 0  # on cn1, where step 1 does not have it
        assert len(nova.acts) == 2
