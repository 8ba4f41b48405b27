"""The databases of Nova's cells: ``python -m tests.processes.cells NOVA_CONF DATABASES``.

The commands of ``nova-manage`` for a new cloud, in one program that loads Nova once. Cell0 gets
a copy of the tables of the other cell, because Nova takes as long to make them again.
``DATABASES`` is the URL of the server without the name of a database.
"""

import subprocess
import sys

from nova import config, objects
from nova.cmd import manage
from sqlalchemy.engine import make_url


def main(conf: str, databases: str) -> None:
    """Make the tables, and write the cells into the database of nova-api."""
    config.parse_args(["nova-manage"], default_config_files=[conf])
    objects.register_all()
    cells = manage.CellV2Commands()
    statuses = {
        "api_db sync": manage.ApiDbCommands().sync(),
        "db sync": manage.DbCommands().sync(local_cell=True),
        "map_cell0": cells.map_cell0(f"{databases}nova_cell0"),
        "create_cell": cells.create_cell(name="cell1"),
    }
    assert not any(statuses.values()), statuses
    copy(databases, "nova", "nova_cell0")


def copy(databases: str, source: str, target: str) -> None:
    """Copy the tables of a database of MariaDB to an empty one."""
    url = make_url(databases)
    address = [f"--host={url.host}", f"--port={url.port}", f"--user={url.username}"]
    dump = subprocess.run(
        ["mariadb-dump", "--no-defaults", *address, source], check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["mariadb", "--no-defaults", *address, target], check=True, input=dump.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
