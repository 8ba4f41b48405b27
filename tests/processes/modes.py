"""The services of Nova in one of both concurrency modes, beside other tools."""

import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from cpu_tiers.conf.quota import UNIFIED_LIMITS
from tests.processes import vendor
from tests.processes.client import Client
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.control import BIN
from tests.processes.daemons import Daemon, free_port, stop, wait_for
from tests.processes.faulty_placement import FaultyPlacement, faulty_placement
from tests.processes.hosts import TWO_NODES

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
    :param placement: what the services take for Placement.
    :param record: the record of decisions.
    """

    name: str
    cloud: Cloud
    scheduler: Daemon
    api: Daemon
    placement: FaultyPlacement
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


def environment(mode: str, way: str, folder: Path) -> dict[str, str]:
    """Return the environment of a service in a concurrency mode, beside the product of a vendor.

    :param way: how the product wraps functions of Nova.
    :param folder: has the nova.conf of nova-api.
    """
    return {
        "VENDOR": way,
        "OS_NOVA_DISABLE_EVENTLET_PATCHING": str(mode == "threading"),
        "OS_NOVA_CONFIG_DIR": str(folder),
        # PyPI's uWSGI starts the interpreter again after SIGHUP, outside of its environment.
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }


@contextmanager
def services(cloud: Cloud, name: str) -> Iterator[Mode]:
    """Run the services in a concurrency mode in a cloud without a nova-scheduler."""
    folder, port = cloud.home(name), free_port()
    folder.mkdir()
    record = folder / "decisions.json"
    with faulty_placement(cloud.placement.url, folder) as placement:
        options: Sections = {
            **placement.options,
            "scheduler": {"workers": 2},
            "api": {"refuse_faulty_flavors": True},
            "filter_scheduler": {
                "decision_record_file": record,
                "give_back_oversold_claims": True,
            },
            # At each boot, nova-api asks Placement what a project has.
            "quota": {"driver": UNIFIED_LIMITS, "count_vcpu_shares": True},
        }
        conf = cloud.control.write_conf(folder, options, PROFILER)
        env = {**cloud.control.clock.environment, **environment(name, MODES[name], conf.parent)}
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
        before = cloud.control.heartbeat(SCHEDULER)
        with _running(mode), compute(cloud, name, placement, name):
            cloud.control.wait_for_heartbeat(SCHEDULER, before)
            mode.wait_until(lambda: LOADED in api.text, "nova-api is loaded")
            yield mode


@contextmanager
def without_scheduler(cloud: Cloud) -> Iterator[None]:
    """Stop the nova-scheduler of the cloud, if it runs; start it again after the context."""
    own = [each for each in cloud.control.services.daemons if each.name == SCHEDULER]
    stop(own)
    try:
        yield
    finally:
        for scheduler in own:
            cloud.control.start_again(scheduler)


@contextmanager
def _running(mode: Mode) -> Iterator[None]:
    """Run nova-scheduler and nova-api, which start beside what the context starts."""
    daemons = mode.scheduler, mode.api
    try:
        for daemon in daemons:
            daemon.launch()
        yield
    finally:
        stop(daemons)


@contextmanager
def compute(
    cloud: Cloud, name: str, placement: FaultyPlacement, mode: str, *parts: Sections
) -> Iterator[None]:
    """Run a nova-compute in a concurrency mode on a host that is gone in the end.

    :param name: of the host.
    :param parts: more of the nova.conf of the host.
    """
    env = {**TWO_NODES, **environment(mode, MODES[mode], cloud.home(name))}
    command = beside_vendor("nova-compute")
    try:
        cloud.start_compute(name, PROFILER, placement.options, *parts, command=command, env=env)
        yield
    finally:
        cloud.remove_compute(name)
