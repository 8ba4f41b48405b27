"""Placement's transactions, stopped after they have written rows and before they commit."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import sqlalchemy

from tests.databases.stored import Database

LOCK = sqlalchemy.text("SELECT id FROM resource_providers FOR UPDATE")
"""Has each write wait that raises the generation of a provider, which Placement does last."""

WAITING = {
    "mysql": """
        SELECT trx_mysql_thread_id, trx_rows_modified > 0 FROM information_schema.innodb_trx
        WHERE trx_state = 'LOCK WAIT'""",
    "postgresql": """
        SELECT a.pid, EXISTS (
            SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
            WHERE l.pid = a.pid AND l.mode = 'RowExclusiveLock' AND c.relkind = 'r'
            AND c.relname <> 'resource_providers')
        FROM pg_stat_activity a
        WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'""",
}
"""The sessions that wait for a row, and whether their transactions have written others."""

PAUSE = 0.15
"""Seconds between two looks.

MariaDB makes ``innodb_trx`` anew only if nobody has looked for a tenth of a second.
"""

SESSION = {
    "mysql": "SELECT id FROM information_schema.processlist WHERE id = {}",
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE pid = {}",
}
END = {"mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({})"}


def in_the_middle(database: Database, send: Callable[[], Any], act: Callable[[int], None]) -> Any:
    """Send a write to Placement, and act while its transaction has written rows and waits.

    A write that waits before its first row, or does not wait, is only sent.

    :param act: takes the number of the session in the database.
    :returns: the answer of Placement.
    """
    kind = database.engine.dialect.name
    with ThreadPoolExecutor(1) as executor, database.engine.connect() as holder:
        holder.execute(LOCK)
        answer = executor.submit(send)
        waiting: list[Any] = []
        while not (answer.done() or waiting):
            wait([answer], PAUSE)
            waiting = database.select(WAITING[kind])
        for session, has_written in waiting:
            if has_written:
                act(session)
        holder.rollback()
        return answer.result()


def end(database: Database, session: int) -> None:
    """End a session, and wait until the database has taken back what it has written."""
    kind = database.engine.dialect.name
    with database.engine.connect() as connection:
        connection.execute(sqlalchemy.text(END[kind].format(session)))
    while database.select(SESSION[kind].format(session)):
        time.sleep(0.01)
