"""The control plane of a cloud: MariaDB, RabbitMQ, Placement and Nova's own services."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import configuration
from tests.processes.backing import mariadb, rabbitmq
from tests.processes.client import Client
from tests.processes.clock import Clock
from tests.processes.configuration import Sections
from tests.processes.daemons import ROOT, Daemon, free_port, kill, listens, wait_for
from tests.processes.stand_ins import stand_ins

BIN = Path(sys.executable).parent
DATABASES = ("placement", "nova_api", "nova_cell0", "nova")


@dataclass(kw_only=True)
class Services:
    """Services of Nova and Placement, with their logs in one folder.

    :param env: variables of all services.
    """

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    daemons: list[Daemon] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)

    def add(self, name: str, command: Sequence[str], **env: str) -> Daemon:
        """Add a service that does not run yet."""
        daemon = Daemon(name=name, command=command, folder=self.folder, env={**self.env, **env})
        self.daemons.append(daemon)
        return daemon

    def serve(self, name: str, module: str, **env: str) -> str:
        """Start a WSGI application; return its URL, before the application serves it."""
        port = free_port()
        command = [sys.executable, "-m", "tests.processes.serve", module, str(port)]
        self.add(name, command, **env).launch()
        self.ports.append(port)
        return f"http://127.0.0.1:{port}"

    def wait_until_all_serve(self) -> None:
        """Wait until all WSGI applications serve their URLs."""
        wait_for(lambda: all(map(listens, self.ports)), "all ports are open", self.daemons)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A running control plane.

    :param databases: their URL without the name of a database.
    :param common: the options of all services of Nova.
    :param scheduler: the options of nova-scheduler.
    :param conf: the nova.conf of the control plane, with the URLs of the databases.
    :param clock: the time of day of all services.
    """

    services: Services
    databases: str
    common: Sections
    scheduler: Sections
    conf: Path
    placement: Client
    nova: Client
    clock: Clock

    def write_conf(self, folder: Path, *parts: Sections) -> Path:
        """Write the nova.conf of the control plane with more options; return its path."""
        return configuration.control(folder, self.databases, self.common, self.scheduler, *parts)

    def heartbeat(self, binary: str, host: str = "") -> str | None:
        """Return the time of the last heartbeat of a service."""
        url = f"/os-services?binary={binary}" + (f"&host={host}" if host else "")
        (service,) = self.nova.get(url).body["services"] or [{}]
        heartbeat: str | None = service.get("updated_at")
        return heartbeat

    def add(self, binary: str) -> Daemon:
        """Add a service that does not run yet."""
        return self.services.add(binary, [str(BIN / binary), "--config-file", str(self.conf)])

    def start_again(self, service: Daemon) -> None:
        """Start a service that has the name of its program, and wait for its heartbeat."""
        before = self.heartbeat(service.name)
        service.launch()
        self.wait_for_heartbeat(service.name, before)

    def wait_for_heartbeat(self, binary: str, before: str | None) -> None:
        """Wait until the last heartbeat of a service is another than before."""
        wait_for(
            lambda: self.heartbeat(binary) != before,
            f"{binary} has a heartbeat",
            self.services.daemons,
        )


@contextmanager
def control(folder: Path, scheduler: Sections) -> Iterator[Control]:
    """Run a control plane, still without the nova-scheduler that gets these options.

    Programs that do not need each other start at the same time.
    """
    with ExitStack() as cleanup:
        with ThreadPoolExecutor() as threads:
            backing = rabbitmq(folder), mariadb(folder, DATABASES), stand_ins()
            transport, databases, others = threads.map(cleanup.enter_context, backing)
        clock = Clock.build(folder)
        services = Services(folder=folder, env=clock.environment)
        cleanup.callback(kill, services.daemons)
        home = configuration.placement(folder, f"{databases}placement")
        placement = services.serve(
            "placement", "placement.wsgi.api", OS_PLACEMENT_CONFIG_DIR=str(home)
        )
        common = configuration.nova(folder, transport, placement, others)
        conf = configuration.control(folder, databases, common, scheduler)
        make_cells(conf, databases)
        nova = services.serve(
            "nova-api", "nova.wsgi.osapi_compute", OS_NOVA_CONFIG_DIR=str(conf.parent)
        )
        plane = Control(
            services=services,
            databases=databases,
            common=common,
            scheduler=scheduler,
            conf=conf,
            placement=Client(placement, "placement 1.39"),
            nova=Client(f"{nova}/v2.1", "compute 2.96"),
            clock=clock,
        )
        plane.add("nova-conductor").launch()
        services.wait_until_all_serve()
        plane.wait_for_heartbeat("nova-conductor", None)
        yield plane


def make_cells(conf: Path, databases: str) -> None:
    """Make the tables of Nova, and its cells."""
    command = [sys.executable, "-m", "tests.processes.cells", str(conf), databases]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
