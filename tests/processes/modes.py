"""The services of Nova in one of both concurrency modes, beside other tools."""

import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tests.processes import vendor
from tests.processes.client import Client
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.control import BIN
from tests.processes.daemons import Daemon, free_port, wait_for
from tests.processes.hosts import TWO_NODES
from tests.processes.slow_placement import SlowPlacement, slow_placement

MODES = {"threading": "wraps", "eventlet": "wrapt"}
"""Both modes, each with the way in which a vendor's product wraps functions of Nova there."""

SCHEDULER = "nova-scheduler"
LOADED = "WSGI app 0 "
"""The beginning of the line of uWSGI that says that nova-api is loaded."""

PROFILER: Sections = {"profiler": {"enabled": True, "hmac_keys": "secret"}}

_DROPPED = re.compile(
    r"^(\S+ \S+) (\d+) WARNING cpu_tiers\S* .*Dropped, so that no answer waits: ([^:]+): ",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Mode:
    """nova-scheduler with two workers, nova-compute and nova-api in a concurrency mode.

    :param name: ``threading`` or ``eventlet``; also the name of the compute host.
    :param cloud: the cloud, seen through the nova-api of this mode.
    :param placement: what nova-scheduler takes for Placement.
    :param record: the record of decisions.
    """

    name: str
    cloud: Cloud
    scheduler: Daemon
    api: Daemon
    placement: SlowPlacement
    record: Path

    @property
    def daemons(self) -> tuple[Daemon, Daemon, Daemon]:
        return self.scheduler, self.cloud.computes[self.name], self.api

    def workers(self) -> list[int]:
        """Return the process ids of the workers of nova-scheduler."""
        children = Path(f"/proc/{self.scheduler.pid}/task").glob("*/children")
        return [int(pid) for path in children for pid in path.read_text().split()]

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; on a time-out show the last log lines of the services."""
        wait_for(condition, what, self.daemons)

    def warnings(self) -> dict[tuple[str, str], list[datetime]]:
        """Return the times of the warnings of nova-scheduler, by worker and dropped work."""
        times: dict[tuple[str, str], list[datetime]] = {}
        for time, pid, work in _DROPPED.findall(self.scheduler.text):
            times.setdefault((pid, work), []).append(datetime.fromisoformat(time))
        return times


def beside_vendor(service: str) -> list[str]:
    """Return the command that starts nova-scheduler or nova-compute beside a vendor's product.

    The path of nova.conf follows the command.
    """
    is_compute = service == "nova-compute"
    file = Path(__file__).with_name("fake_libvirt.py") if is_compute else BIN / service
    return [sys.executable, "-m", vendor.__name__, str(file), "--config-file"]


def api_beside_vendor(port: int) -> list[str]:
    """Return the command that starts nova-api in uWSGI beside a vendor's product."""
    return [
        *(str(BIN / "uwsgi"), "--http-socket", f"127.0.0.1:{port}", "--processes", "1"),
        *("--master", "--enable-threads", "--lazy-apps", "--need-app", "--die-on-term"),
        *("--virtualenv", sys.prefix, "--pyimport", vendor.__name__),
        *("--module", "nova.wsgi.osapi_compute:application"),
    ]


def environment(mode: str, way: str, conf: Path) -> dict[str, str]:
    """Return the environment of a service in a concurrency mode, beside the product of a vendor.

    :param way: how the product wraps functions of Nova.
    """
    return {
        "VENDOR": way,
        "OS_NOVA_DISABLE_EVENTLET_PATCHING": str(mode == "threading"),
        "OS_NOVA_CONFIG_DIR": str(conf.parent),
        # PyPI's uWSGI starts the interpreter again after SIGHUP, outside of its environment.
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }


@contextmanager
def services(cloud: Cloud, name: str) -> Iterator[Mode]:
    """Run the services in a concurrency mode in a cloud without a nova-scheduler."""
    folder, port = cloud.home(name), free_port()
    folder.mkdir()
    record = folder / "decisions.json"
    with slow_placement(cloud.placement.url) as placement:
        options: Sections = {
            "scheduler": {"workers": 2},
            "placement": {"endpoint": placement.url},
            "api": {"refuse_faulty_flavors": True},
            "filter_scheduler": {
                "decision_record_file": record,
                "give_back_oversold_claims": True,
            },
        }
        conf = cloud.control.write_conf(folder, options, PROFILER)
        env = environment(name, MODES[name], conf)
        commands = {
            SCHEDULER: [*beside_vendor(SCHEDULER), str(conf)],
            "nova-api": api_beside_vendor(port),
        }
        scheduler, api = (
            Daemon(name=service, command=command, folder=folder, env=env)
            for service, command in commands.items()
        )
        nova = Client(f"http://127.0.0.1:{port}/v2.1", cloud.nova.version)
        own = replace(cloud, control=replace(cloud.control, nova=nova))
        mode = Mode(
            name=name, cloud=own, scheduler=scheduler, api=api, placement=placement, record=record
        )
        api.start(lambda: True)  # loads while the others start
        try:
            with _running(cloud, scheduler), _compute(cloud, name, env):
                wait_for(lambda: LOADED in api.text, "nova-api is loaded", [api])
                yield mode
        finally:
            api.stop()


@contextmanager
def without_scheduler(cloud: Cloud) -> Iterator[None]:
    """Stop the nova-scheduler of the cloud, and start it again after the context."""
    (own,) = (each for each in cloud.control.services.daemons if each.name == SCHEDULER)
    own.stop()
    try:
        yield
    finally:
        cloud.control.start_again(own)


@contextmanager
def _running(cloud: Cloud, scheduler: Daemon) -> Iterator[None]:
    try:
        cloud.control.start_again(scheduler)
        yield
    finally:
        scheduler.stop()


@contextmanager
def _compute(cloud: Cloud, name: str, env: dict[str, str]) -> Iterator[None]:
    """Run a nova-compute on a host that is gone in the end."""
    command = beside_vendor("nova-compute")
    cloud.start_compute(name, PROFILER, command=command, env={**TWO_NODES, **env})
    try:
        yield
    finally:
        cloud.computes[name].stop()
        cloud.forget_compute(name)
