"""A MariaDB or a PostgreSQL, and over it a Placement in several processes with threads."""

import getpass
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import requests

from tests.processes import configuration
from tests.processes.backing import mariadb
from tests.processes.daemons import ROOT, Daemon, free_port, listens

BIN = Path(sys.executable).parent
DATABASE = "placement"
WORKERS, THREADS = 2, 8


@contextmanager
def postgresql(folder: Path, database: str) -> Iterator[str]:
    """Run a server with a database; yield the URL of the database.

    PostgreSQL refuses to run as root. For root it runs as the user of the Debian package, in a
    folder of its own, because the folder of a test is only for root.
    """
    is_root = os.geteuid() == 0
    user = "postgres" if is_root else getpass.getuser()
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if is_root else []
    programs, port = _programs(), free_port()
    home = tempfile.mkdtemp(prefix="cpu-tiers-postgresql-")
    if is_root:
        os.chown(home, pwd.getpwnam(user).pw_uid, -1)
    data = f"{home}/data"
    create = [f"{programs}/initdb", f"--pgdata={data}", "--username=root", "--auth=trust"]
    subprocess.run(
        [*become, *create, "--encoding=UTF8"], check=True, capture_output=True, cwd=home
    )
    options = [f"-p{port}", f"-k{home}", "-cfsync=off", "-clisten_addresses=127.0.0.1"]
    command = [*become, f"{programs}/postgres", f"-D{data}", *options]
    daemon = Daemon(name="postgresql", command=command, folder=folder)
    try:
        daemon.start(lambda: listens(port))
        address = [f"--host={home}", f"--port={port}", "--username=root"]
        subprocess.run([f"{programs}/createdb", *address, database], check=True)
        yield f"postgresql+psycopg2://root@127.0.0.1:{port}/{database}"
    finally:
        daemon.stop()
        shutil.rmtree(home)


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs, which Debian does not put into PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    path = shutil.which("initdb")
    return found[-1] if found else Path(path or "initdb").parent


@contextmanager
def _mariadb(folder: Path, database: str) -> Iterator[str]:
    with mariadb(folder, [database]) as url:
        yield f"{url}{database}"


Server = Callable[[Path, str], AbstractContextManager[str]]

SERVERS: dict[str, Server] = {"mariadb": _mariadb, "postgresql": postgresql}


@contextmanager
def placement(
    folder: Path, database: str, *, workers: int = WORKERS, **options: object
) -> Iterator[str]:
    """Serve Placement in several processes, each with threads; yield its URL.

    :param database: the URL of its database, which is empty or Placement's own.
    :param workers: the number of processes.
    :param options: of the section ``[placement]`` of placement.conf.
    """
    # Several processes that create the tables at the same time would be in each other's way.
    home = tables_of_placement(folder, database, **options)
    environment = {"OS_PLACEMENT_CONFIG_DIR": str(home)}
    port = free_port()
    command = [str(BIN / "gunicorn"), f"--bind=127.0.0.1:{port}", f"--workers={workers}"]
    command += [f"--threads={THREADS}", "--keep-alive=60", "--timeout=120"]
    command += ["--no-control-socket", "placement.wsgi.api:application"]
    server = Daemon(name="gunicorn", command=command, folder=folder, env=environment)
    try:
        server.start(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def tables_of_placement(folder: Path, database: str, **options: object) -> Path:
    """Have Placement's own migrations make its tables; return the folder of placement.conf."""
    home = configuration.placement(folder, database, {"placement": options})
    sync = [str(BIN / "placement-manage"), "--config-dir", str(home), "db", "sync"]
    subprocess.run(sync, check=True, capture_output=True, cwd=ROOT)
    return home


def _answers(port: int) -> bool:
    """Tell whether Placement answers: gunicorn listens before Placement has its names."""
    try:
        return requests.get(f"http://127.0.0.1:{port}/", timeout=300).ok
    except requests.ConnectionError:
        return False
