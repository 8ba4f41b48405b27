"""A MariaDB and a RabbitMQ for Nova: empty, in a folder, and only for these tests."""

import getpass
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql

from tests.processes.daemons import Daemon, free_port, kill, listens

RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""The wrapper in PATH of Debian runs only as the user rabbitmq."""

MEMORY, GIB = Path("/dev/shm"), 2**30  # noqa: S108  # a folder of its own is made there


@contextmanager
def memory() -> Iterator[Path]:
    """Yield a folder in memory, or on a disk if the machine has no room there.

    MariaDB waits for the disk at each new table and index, and Nova has hundreds of them.
    """
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > GIB
    with tempfile.TemporaryDirectory(
        prefix="cpu-tiers-", dir=MEMORY if has_room else None
    ) as folder:
        yield Path(folder)


@contextmanager
def mariadb(folder: Path, databases: Iterable[str]) -> Iterator[str]:
    """Run a server with these databases; yield their URL without the name of a database.

    :param folder: for the log.
    """
    with memory() as data:
        yield from _mariadb(folder, data, databases)


def _mariadb(folder: Path, data: Path, databases: Iterable[str]) -> Iterator[str]:
    port, user = free_port(), getpass.getuser()
    subprocess.run(
        [
            *("mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={user}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ],
        check=True,
        capture_output=True,
    )
    command = [
        *("mariadbd", "--no-defaults", f"--datadir={data}", f"--user={user}"),
        *("--bind-address=127.0.0.1", f"--port={port}", f"--socket={data / 'socket'}"),
        *("--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0"),
        "--max-connections=1000",
    ]
    daemon = Daemon(name="mariadb", command=command, folder=folder)
    try:
        daemon.start(lambda: listens(port))
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection:
            for name in databases:
                connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb3")
        yield f"mysql+pymysql://root@127.0.0.1:{port}/"
    finally:
        kill([daemon])


@contextmanager
def rabbitmq(folder: Path) -> Iterator[str]:
    """Run a server with a separate port mapper of Erlang; yield the transport URL."""
    home, port, mapper = folder / "rabbitmq", free_port(), free_port()
    home.mkdir()
    env = {
        "HOME": str(home),  # there Erlang keeps its cookie
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": str(mapper),
        "RABBITMQ_NODENAME": "nova@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(home),
        "RABBITMQ_LOG_BASE": str(home),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(home / "none"),
    }
    names = Daemon(name="epmd", command=["epmd"], folder=folder, env=env)
    broker = Daemon(name="rabbitmq", command=[RABBITMQ], folder=folder, env=env)
    try:
        names.start(lambda: listens(mapper))
        broker.start(lambda: listens(port))
        yield f"rabbit://guest:guest@127.0.0.1:{port}/"
    finally:
        kill([broker, names])
