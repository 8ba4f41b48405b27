"""``host pressure``: one trait of a host, by hand and by the metrics of the host."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.placement.errors import PlacementUnavailable
from cpu_tiers.placement.records import Traits
from cpu_tiers.tools.http.metrics import read_metrics
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers import host_pressure
from cpu_tiers.tools.writers.host_pressure import METRICS, change_trait
from tests.functional.placement.providing import provide

Command = Callable[..., Any]
CPU, OWN = "CUSTOM_PRESSURE_CPU", frozenset({"COMPUTE_NODE", "CUSTOM_GOLD"})


@pytest.fixture
def compute1(client: PlacementClient) -> str:
    client.create_trait("CUSTOM_GOLD")
    return provide(client, "compute1", OWN, VCPU=8)


@pytest.fixture
def press(run: Command, placement_conf: Path) -> Command:
    def press(host: str, *arguments: str, status: int = 0) -> Any:
        command = ("--config-file", placement_conf, "host", "pressure", host, *arguments)
        return run(*command, "-f", "json", status=status)

    return press


def test_the_other_traits_stay(
    press: Command, compute1: str, client: PlacementClient, seen: list[str]
) -> None:
    names = [{"provider": "compute1", "what": f"trait {CPU}", "before": "absent"}]
    assert json.loads(press("compute1", "--set", "CPU").stdout) == [
        {**names[0], "after": "present"}
    ]
    assert client.traits(compute1).names == OWN | {CPU}
    press("compute1", "--set", "CUSTOM_PRESSURE_DISK_IO")
    seen.clear()
    second = press("compute1", "--set", "CPU")
    assert (json.loads(second.stdout), second.stderr) == (
        [],
        "Placement is up to date: nothing was changed.\n",
    )
    assert [line for line in seen if not line.startswith("GET ")] == []
    press("compute1", "--clear", CPU)
    assert client.traits(compute1).names == OWN | {"CUSTOM_PRESSURE_DISK_IO"}


def test_a_trait_that_another_client_adds_meanwhile_stays(
    compute1: str, client: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other client writes between our read and our write, so our write is refused."""
    original = client.set_traits

    def after_another(provider: str, traits: Traits) -> Traits:
        monkeypatch.setattr(client, "set_traits", original)
        client.create_trait("CUSTOM_OTHER")
        present = client.traits(provider)
        names = present.names | {"CUSTOM_OTHER"}
        original(provider, Traits(generation=present.generation, names=names))
        return original(provider, traits)

    monkeypatch.setattr(client, "set_traits", after_another)
    (change,) = change_trait(client, client.provider(compute1), CPU, is_set=True)
    assert str(change) == f"compute1: trait {CPU} absent -> present"
    assert client.traits(compute1).names == OWN | {CPU, "CUSTOM_OTHER"}


@pytest.mark.parametrize("fault", ["JSON 503", "JSON 409", "answer lost"])
def test_a_passing_fault(
    press: Command, compute1: str, client: PlacementClient, faults: Any, fault: str
) -> None:
    faults.append((f"PUT .*{compute1}/traits", fault))
    (change,) = json.loads(press("compute1", "--set", "CPU").stdout)
    assert (faults, change["after"]) == ([], "present")
    assert client.traits(compute1).names == OWN | {CPU}


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("compute2", "HOST: Placement has no provider compute2; check the name"),
        ("compute1.example.org", "no provider compute1.example.org; give compute1"),
        ("double", "no provider double; give double.a.example or double.b.example"),
        ("compute1_NUMA0", "compute1_NUMA0 is a part of a host; give the name of the host's root"),
    ],
)
def test_a_host_that_cannot_be_meant(
    press: Command, compute1: str, client: PlacementClient, host: str, message: str
) -> None:
    client.create_provider("compute1_NUMA0", parent_uuid=compute1)
    for name in ("double.a.example", "double.b.example"):
        client.create_provider(name)
    assert message in press(host, "--set", "CPU", status=1).stderr


@pytest.mark.usefixtures("compute1")
@pytest.mark.parametrize(
    ("fault", "line", "message"),
    [
        ("JSON 403", "PUT /traits", "HTTP 403: policy does not allow it; check username"),
        ("JSON 403", "PUT .*/traits$", "HTTP 403: policy does not allow it; check username"),
        ("JSON 503", "PUT .*/traits$", "HTTP 503: the database is away"),
        ("JSON 403", "GET /resource_providers", "HTTP 403"),
    ],
)
def test_a_lasting_fault(
    press: Command, faults: list[tuple[str, str]], fault: str, line: str, message: str
) -> None:
    faults += [(line, fault)] * 9
    assert message in press("compute1", "--set", "CPU", status=1).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--set", "cpu"),
        ("--set", ""),
        ("--set", "PRESSURE_CPU"),
        ("--set", "CUSTOM_CPU"),
        ("--set", "A" * 240),  # 16 characters of CUSTOM_PRESSURE_ and 240 are more than 255
        ("--watch", "CPU", "--metrics", "file:///etc/passwd"),
        ("--watch", "CPU", "--set-above", "nan"),
        ("--set", "CPU", "--clear", "CPU"),
        (),
    ],
)
def test_wrong_usage(press: Command, arguments: tuple[str, ...]) -> None:
    assert press("compute1", *arguments, status=2).stdout == ""


def test_thresholds_in_the_wrong_order(press: Command) -> None:
    arguments = ("--watch", "CPU", "--set-above", "20", "--clear-below", "30")
    error = press("compute1", *arguments, status=1).stderr
    assert "--clear-below: more than 20; give at most --set-above" in error


# What is missing, in percent of the CPU time due since the look before; None: no reading.
@pytest.mark.parametrize(
    ("percents", "states"),
    [
        pytest.param([50, 61, 50, 39, 50], "01100", id="between 40 and 60 the trait stays"),
        pytest.param([0, 0], "00", id="guests that get what is due, however long they wait"),
        pytest.param([0.4, 0], "00", id="hundredths of a CPU"),
        pytest.param([70, None, None, 70], "1111", id="two looks without a reading"),
        pytest.param([70, None, None, None], "1110", id="the third look clears"),
        pytest.param([None, None, None], "000", id="a monitor without data sets nothing"),
    ],
)
def test_the_trait_follows_the_metrics(
    monkeypatch: pytest.MonkeyPatch,
    compute1: str,
    client: PlacementClient,
    percents: list[float | None],
    states: str,
) -> None:
    at, due, missing, readings = 1000.0, 50.0, 5.0, [(1000.0, 50.0, 5.0)]
    for percent in percents:  # a look every 10 seconds, in which two CPUs are due
        at, due = at + 10, due + 20
        missing += 20 * (70 if percent is None else percent) / 100
        readings.append((at, due, missing) if percent is not None else readings[-1])
    monkeypatch.setattr(host_pressure, "read_metrics", lambda *_: readings.pop(0))
    watch = watch_of(client, compute1)
    watch.look()  # the first reading has no time before
    found = ""
    for _ in percents:
        watch.look()
        found += str(int(CPU in client.traits(compute1).names))
    assert found == states


def watch_of(client: PlacementClient, uuid: str) -> Any:
    arguments = Namespace(watch=CPU, metrics="", interval=0, set_above=60.0, clear_below=40.0)
    return host_pressure._Watch(client, client.provider(uuid), arguments)


def test_a_restart_of_the_watch_is_no_reading(
    monkeypatch: pytest.MonkeyPatch, compute1: str, client: PlacementClient
) -> None:
    """5 seconds since the new start are less than 900: the difference means nothing."""
    readings = [(1000.0, 900.0, 900.0), (1100.0, 5.0, 5.0), (1110.0, 15.0, 15.0)]
    monkeypatch.setattr(host_pressure, "read_metrics", lambda *_: readings.pop(0))
    watch = watch_of(client, compute1)
    states = []
    for _ in range(3):
        watch.look()
        states.append(CPU in client.traits(compute1).names)
    assert states == [False, False, True]  # 10 of 10 seconds are missing


class Exporter(BaseHTTPRequestHandler):
    """Shows a host whose guests miss 9 of 10 due seconds, as ``host watch`` does."""

    def do_GET(self) -> None:  # http.server looks for this name
        server: Any = self.server
        server.looks += 1
        values = zip(METRICS, (10.0, 10.0, 9.0), strict=True)
        lines = (f"{name} {value * server.looks}" for name, value in values)
        text = server.text or "\n".join(["# HELP x", *lines])
        self.send_response(404 if self.path == "/" else 200)
        self.end_headers()
        self.wfile.write(f"{text}\n".encode())

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def exporter() -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Exporter)
    server.looks, server.text = 0, ""
    server.url = f"http://127.0.0.1:{server.server_port}/metrics"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with server:
        yield server
        server.shutdown()
        thread.join()


def test_the_end_of_the_watch_clears_the_trait(
    placement_conf: Path, compute1: str, client: PlacementClient, exporter: Any
) -> None:
    program = str(Path(sys.executable).with_name("cpu-tiers"))
    command = [program, "--config-file", str(placement_conf), "host", "pressure", "compute1"]
    watch = ["--watch", "CPU", "--interval", "1", "--metrics", exporter.url]
    with subprocess.Popen([*command, *watch], stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 120
        while CPU not in client.traits(compute1).names and time.monotonic() < until:
            time.sleep(0.1)
        assert client.traits(compute1).names == OWN | {CPU}
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 143
    assert error.splitlines() == [
        f"{CPU} of compute1 follows {exporter.url}",
        f"compute1: trait {CPU} absent -> present, because of 90 % of the CPU time due to"
        " guests, which is missing",
        f"The watch has ended, and compute1 has no {CPU}.",
    ]
    assert client.traits(compute1).names == OWN


def test_an_end_without_placement_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, compute1: str, client: PlacementClient
) -> None:
    def away(*_: object, **__: object) -> None:
        raise PlacementUnavailable("no answer")

    def interrupted(_: float) -> None:
        monkeypatch.setattr(host_pressure, "change_trait", away)
        raise KeyboardInterrupt

    monkeypatch.setattr(host_pressure, "read_metrics", lambda *_: (1.0, 1.0, 1.0))
    monkeypatch.setattr(host_pressure, "time", SimpleNamespace(sleep=interrupted))
    with pytest.raises(KeyboardInterrupt, match=f"{CPU} may stay on compute1: run cpu-tiers host"
                       r" pressure compute1 --clear CPU \(no answer\)"):  # fmt: skip
        watch_of(client, compute1).run()


@pytest.mark.parametrize(
    "text", ["<html>", f"{METRICS[0]} 1", f"{METRICS[0]} 1\n{METRICS[1]} NaN"]
)
def test_an_answer_without_metrics(exporter: Any, text: str) -> None:
    exporter.text = text
    with pytest.raises(InvalidInput, match=r"no metrics: the answer has no .*; give the URL"):
        read_metrics(exporter.url, METRICS)


def test_no_metrics_at_the_url(exporter: Any) -> None:
    assert read_metrics(exporter.url, METRICS) == (10.0, 10.0, 9.0)
    with pytest.raises(InvalidInput, match="no metrics: HTTP 404"):
        read_metrics(exporter.url.removesuffix("metrics"), METRICS)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with pytest.raises(InvalidInput, match=r"no metrics: .*refused"):
        read_metrics(url, METRICS)
