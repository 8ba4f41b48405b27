"""The databases of a test as files, with the tables that the migrations of the releases make.

Nova's fixtures make tables of the models, in memory. Their rows are copied into files, whose
tables the installed Nova and Placement have made by their own migrations.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from nova import context as nova_context
from nova import objects
from nova.db import migration
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from oslo_db.sqlalchemy import enginefacade
from placement import db_api
from placement.db.sqlalchemy import migration as placement_migration

TEMPLATES: dict[str, bytes] = {}
"""An empty database of each kind, which is made once."""


def copy_databases(folder: Path) -> str:
    """Copy all databases of the test into a folder; return the lines of nova.conf for them.

    The URLs of cells are templates, as ``nova-manage cell_v2 update_cell`` makes them.
    """
    _copy(db_api.get_placement_engine(), _migrated("placement"), folder / "placement")
    _copy(api_db.get_engine(), _migrated("api"), folder / "api")
    context = nova_context.get_admin_context()
    with sqlite3.connect(folder / "api") as rows:
        for cell in objects.CellMappingList.get_all(context):
            with nova_context.target_cell(context, cell) as cell_context:
                engine = main_db.get_engine(context=cell_context)
                _copy(engine, _migrated("main"), folder / cell.uuid)
            rows.execute(
                "UPDATE cell_mappings SET database_connection = ? WHERE uuid = ?",
                (f"{{scheme}}:///{folder}/{cell.uuid}", cell.uuid),
            )
    rows.close()
    return (
        f"[placement_database]\nconnection = sqlite:///{folder}/placement\n"
        f"[api_database]\nconnection = sqlite:///{folder}/api\n"
        "[database]\nconnection = sqlite://user@host/main\n"
    )


def _migrated(kind: str) -> bytes:
    """Return an empty database, as a service has it after its ``db sync``."""
    if kind not in TEMPLATES:
        engine = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
        make: Callable[[], None] = {
            "placement": lambda: _migrate_placement(engine),
            "api": lambda: _migrate_nova(engine, "api"),
            "main": lambda: _migrate_nova(engine, "main"),
        }[kind]
        make()
        raw: Any = engine.raw_connection()
        TEMPLATES[kind] = raw.driver_connection.serialize()
        raw.close()
        engine.dispose()
    return TEMPLATES[kind]


def _migrate_nova(engine: sa.Engine, kind: str) -> None:
    config = migration._find_alembic_conf(kind)
    config.set_main_option("sqlalchemy.url", "sqlite://")
    migration._upgrade_alembic(engine, config, None)


def _migrate_placement(engine: sa.Engine) -> None:
    manager = enginefacade.transaction_context()
    manager.configure(connection="sqlite://")
    restore = db_api.placement_context_manager.patch_factory(manager)
    undo = db_api.placement_context_manager.patch_engine(engine)
    try:
        config = placement_migration._alembic_config()
        config.attributes["configure_logger"] = False
        command.upgrade(config, "head")
    finally:
        undo()
        restore()


def _copy(engine: Any, template: bytes, path: Path) -> None:
    """Copy the rows of an engine's database into a new file with the tables of a template."""
    raw = engine.raw_connection()
    old = path.with_suffix(".old")
    with sqlite3.connect(old) as source:
        raw.driver_connection.backup(source)
    source.close()
    raw.close()
    path.write_bytes(template)
    with sqlite3.connect(path) as target:
        target.execute("PRAGMA foreign_keys = OFF")
        target.execute(f"ATTACH '{old}' AS old")
        names = "SELECT name FROM {}.sqlite_master WHERE type = 'table'"
        known = {name for (name,) in target.execute(names.format("old"))}
        for (name,) in target.execute(names.format("main")).fetchall():
            if name in known and name != "alembic_version" and not name.startswith("sqlite_"):
                columns = [
                    row[1] for row in target.execute(f"PRAGMA main.table_info({name})").fetchall()
                ]
                stored = {row[1] for row in target.execute(f"PRAGMA old.table_info({name})")}
                both = ", ".join(f'"{column}"' for column in columns if column in stored)
                target.execute(f"DELETE FROM main.{name}")  # noqa: S608
                target.execute(f"INSERT INTO main.{name} ({both}) SELECT {both} FROM old.{name}")  # noqa: S608
    target.close()
