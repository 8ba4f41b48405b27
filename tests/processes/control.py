"""The control plane of a cloud: MariaDB, RabbitMQ, Placement and Nova's own services."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import configuration
from tests.processes.backing import mariadb, rabbitmq
from tests.processes.client import Client
from tests.processes.configuration import Sections
from tests.processes.daemons import ROOT, Daemon, free_port, listens, stop
from tests.processes.stand_ins import stand_ins

BIN = Path(sys.executable).parent
DATABASES = ("placement", "nova_api", "nova_cell0", "nova")


@dataclass(kw_only=True)
class Services:
    """Services of Nova and Placement, with their logs in one folder."""

    folder: Path
    daemons: list[Daemon] = field(default_factory=list)

    def add(self, name: str, command: Sequence[str], **env: str) -> Daemon:
        """Add a service that does not run yet."""
        daemon = Daemon(name=name, command=command, folder=self.folder, env=env)
        self.daemons.append(daemon)
        return daemon

    def serve(self, name: str, module: str, **env: str) -> str:
        """Start a WSGI application; return its URL."""
        port = free_port()
        command = [sys.executable, "-m", "tests.processes.serve", module, str(port)]
        self.add(name, command, **env).start(lambda: listens(port))
        return f"http://127.0.0.1:{port}"


@dataclass(frozen=True, kw_only=True)
class Control:
    """A running control plane.

    :param databases: their URL without the name of a database.
    :param common: the options of all services of Nova.
    :param scheduler: the options of nova-scheduler.
    :param conf: the nova.conf of the control plane, with the URLs of the databases.
    """

    services: Services
    databases: str
    common: Sections
    scheduler: Sections
    conf: Path
    placement: Client
    nova: Client

    def write_conf(self, folder: Path, *parts: Sections) -> Path:
        """Write the nova.conf of the control plane with more options; return its path."""
        return configuration.control(folder, self.databases, self.common, self.scheduler, *parts)

    def heartbeat(self, binary: str, host: str = "") -> str | None:
        """Return the time of the last heartbeat of a service."""
        url = f"/os-services?binary={binary}" + (f"&host={host}" if host else "")
        (service,) = self.nova.get(url).body["services"] or [{}]
        heartbeat: str | None = service.get("updated_at")
        return heartbeat

    def start(self, binary: str) -> None:
        """Start a service."""
        command = [str(BIN / binary), "--config-file", str(self.conf)]
        self.start_again(self.services.add(binary, command))

    def start_again(self, service: Daemon) -> None:
        """Start a service that has the name of its program, and wait for its heartbeat."""
        before = self.heartbeat(service.name)
        service.start(lambda: self.heartbeat(service.name) != before)


@contextmanager
def control(folder: Path, scheduler: Sections) -> Iterator[Control]:
    """Run a control plane with these options of nova-scheduler."""
    with ExitStack() as cleanup:
        databases = cleanup.enter_context(mariadb(folder, DATABASES))
        transport = cleanup.enter_context(rabbitmq(folder))
        others = cleanup.enter_context(stand_ins())
        services = Services(folder=folder)
        cleanup.callback(stop, services.daemons)
        home = configuration.placement(folder, f"{databases}placement")
        placement = services.serve(
            "placement", "placement.wsgi.api", OS_PLACEMENT_CONFIG_DIR=str(home)
        )
        common = configuration.nova(folder, transport, placement, others)
        conf = configuration.control(folder, databases, common, scheduler)
        manage(conf, "api_db", "sync")
        manage(conf, "cell_v2", "map_cell0", "--database_connection", f"{databases}nova_cell0")
        manage(conf, "db", "sync")
        manage(conf, "cell_v2", "create_cell", "--name", "cell1")
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
        )
        plane.start("nova-conductor")
        plane.start("nova-scheduler")
        yield plane


def manage(conf: Path, *arguments: str) -> None:
    """Run nova-manage."""
    command = [str(BIN / "nova-manage"), "--config-file", str(conf), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
