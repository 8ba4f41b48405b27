"""Time ``cpu-tiers-status upgrade check`` on a database of 10,000 servers.

Nova's objects write the rows of 20 servers, and SQL copies the rows, with uuids of their own: to
make 10,000 servers by objects takes minutes. The servers have 20 flavors, of which a flavor
breaks a rule, and the image properties of a usual image. The database is a file of SQLite, or a
MariaDB: ``pifpaf run mysql -- python -W ignore benchmarks/upgrade_check.py``. The figures are of
the whole process.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    from nova import config, context, objects
    from nova.db import migration
    from nova.db.main import models

import sqlalchemy as sa
from oslo_utils import uuidutils

from tests.nova.stored_rows import make_flavor, store_server

SERVERS = 10_000
FLAVORS = 20
IMAGE = {"hw_disk_bus": "virtio", "hw_qemu_guest_agent": "yes", "os_distro": "debian"}


def connections(folder: Path) -> dict[str, str]:
    """Return the address of the API database and of the database of the cell v2."""
    server = os.environ.get("PIFPAF_MYSQL_URL")
    if server is None:
        return {name: f"sqlite:///{folder / name}.db" for name in ("api", "main")}
    url = sa.make_url(server).set(drivername="mysql+pymysql")
    with sa.create_engine(url).begin() as connection:
        for name in ("nova_api", "nova_main"):
            connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb3"))
    shown = {name: url.set(database=f"nova_{name}") for name in ("api", "main")}
    return {name: address.render_as_string(hide_password=False) for name, address in shown.items()}


def make_databases(conf: Path, main: str) -> None:
    """Create the tables, a cell v2, the flavors and the servers."""
    config.parse_args(["nova-manage"], default_config_files=[str(conf)])
    objects.register_all()
    migration.db_sync(database="api")
    migration.db_sync(database="main")
    admin = context.get_admin_context()
    cell = objects.CellMapping(
        admin,
        uuid=new_uuid(),
        name="cell1",
        transport_url="fake:/",
        database_connection=main,
    )
    cell.create()
    flavors = []
    for number in range(FLAVORS):
        specs = {"quota:cpu_shares": str(16384 if number == 0 else 100 * number)}
        flavors.append(make_flavor(admin, f"flavor-{number}", specs))
        flavors[-1].create()
    with context.target_cell(admin, cell) as cell_context:
        for number, flavor in enumerate(flavors):
            store_server(cell_context, f"server-{number}", flavor, IMAGE)
    with sa.create_engine(main).begin() as connection:
        copy_servers(connection)


def copy_servers(connection: sa.Connection) -> None:
    """Copy the rows of all servers, until there are enough."""
    of_server = {
        models.Instance: "uuid",
        models.InstanceExtra: "instance_uuid",
        models.InstanceSystemMetadata: "instance_uuid",
    }
    tables = {model.__table__: name for model, name in of_server.items()}
    rows = {table: connection.execute(sa.select(table)).mappings().all() for table in tables}
    for _ in range(SERVERS // FLAVORS - 1):
        uuids: dict[str, str] = {}
        for table, name in tables.items():
            copies = [
                {**row, name: uuids.setdefault(row[name], new_uuid())} for row in rows[table]
            ]
            connection.execute(sa.insert(table), [_without_id(copy) for copy in copies])


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def new_uuid() -> str:
    """Return a uuid as Nova makes it."""
    uuid: str = uuidutils.generate_uuid()
    return uuid


def main() -> None:
    """Make the databases, and print the seconds that the command takes."""
    with tempfile.TemporaryDirectory() as name:
        databases = connections(Path(name))
        conf = Path(name, "nova.conf")
        conf.write_text(
            f"[api_database]\nconnection = {databases['api']}\n"
            f"[database]\nconnection = {databases['main']}\n"
        )
        make_databases(conf, databases["main"])
        command = str(Path(sys.executable).with_name("cpu-tiers-status"))
        begin = time.perf_counter()
        result = subprocess.run(
            [command, "--config-file", str(conf), "upgrade", "check", "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - begin
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    print(f"{SERVERS} servers: {seconds:.1f} s, of which {cpu_seconds:.1f} s of CPU time")
    print(result.stderr.strip())
    start = result.stdout.index("flavors and")
    print(result.stdout[start : start + 60])


if __name__ == "__main__":
    main()
