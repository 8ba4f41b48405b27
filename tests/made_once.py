"""What libraries make anew for each database, service or request, made once for all tests.

Each test has databases of its own. SQLAlchemy keeps the statements that it
compiled with the engine of a database, so that each test would compile all
statements of Nova and of Placement again: 7 % of the CPU time of
tests/nova/test_moves.py. And Placement would create its tables, traits and
resource classes again, which takes 0.1 seconds. And jsonschema checks the schema
itself before each body that Placement validates, which takes as long as the rest
of a small request. And Placement makes the aliases of its tables anew for each
query, with all columns: 10 % of the CPU time of tests/nova/numa/test_life_ports.py.
And oslo.policy reads the file that Nova's fixture has just written, which takes
0.1 seconds. And Nova makes a class of a validator for each JSON schema of each request. And
the cache of the module re is smaller than the number of patterns that Nova has for routes
and extra specs, so that each service, and each look at an extra spec, compiles them again.
"""

import functools
import re
import sqlite3
from types import SimpleNamespace
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # has no types; comes with Placement
import sqlalchemy
from oslo_db.sqlalchemy import engines
from oslo_policy import policy
from placement import db_api, deploy, util
from placement.objects import resource_class, trait
from sqlalchemy.util import LRUCache

STATEMENTS = 5_000
"""How many compiled statements are kept: more than Nova and Placement have."""


def share_all() -> None:
    """Have all tests of the process share what does not differ between them."""
    share_statements()
    keep_aliases()
    copy_first_placement()
    check_schemas_once()
    parse_policies_once()
    compile_patterns_once()


class SharedStatements(LRUCache[Any, Any]):
    """A cache of compiled statements for the engines of several SQLite databases.

    A key begins with the dialect object of an engine. oslo.db makes the dialects
    of all SQLite engines alike, so that the cache needs their class only.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


def share_statements() -> None:
    """Have all SQLite engines that oslo.db makes from now on share their compiled statements."""
    statements, create = SharedStatements(STATEMENTS), engines.create_engine

    def create_engine(*args: Any, **kwargs: Any) -> Any:
        engine = create(*args, **kwargs)
        if engine.dialect.name == "sqlite":
            engine._compiled_cache = statements
        return engine

    engines.create_engine = create_engine


def keep_aliases() -> None:
    """Have each alias of a table be made once."""
    made: dict[tuple[sqlalchemy.Table, str], Any] = {}
    make = sqlalchemy.alias

    def alias(selectable: Any, name: str | None = None, flat: bool = False) -> Any:
        if name is None or not isinstance(selectable, sqlalchemy.Table):
            return make(selectable, name, flat)
        key = (selectable, name)
        if key not in made:
            new = make(selectable, name, flat)
            assert new.c  # made now, before a second thread has the alias
            made[key] = new
        return made[key]

    sqlalchemy.alias = alias


def copy_first_placement() -> None:
    """Have each later new database of Placement be a copy of the first new one."""
    first: list[sqlite3.Connection] = []
    update = deploy.update_database

    def update_database(conf: Any) -> None:
        if first and not trait._TRAITS_SYNCED:  # False: a new database, without data
            copy_to_placement(first[0])
            trait._TRAITS_SYNCED = resource_class._RESOURCE_CLASSES_SYNCED = True
            return
        update(conf)
        if not first:
            first.append(copy_of_placement())

    deploy.update_database = update_database


def check_schemas_once() -> None:
    """Have Placement check each of its JSON schemas only before the schema's first use."""
    checked: dict[int, Any] = {}  # with the schemas, so that their ids stay in use

    def validate(body: Any, schema: Any, *args: Any, **kwargs: Any) -> None:
        if id(schema) not in checked:
            checked[id(schema)] = schema
            jsonschema.validators.validator_for(schema).check_schema(schema)
        validator = jsonschema.validators.validator_for(schema)(schema, *args, **kwargs)
        if error := jsonschema.exceptions.best_match(validator.iter_errors(body)):
            raise error

    util.jsonschema = SimpleNamespace(**{**vars(jsonschema), "validate": validate})


def parse_policies_once() -> None:
    """Have oslo.policy parse the same contents of a policy file once."""
    parse = functools.lru_cache(policy.parse_file_contents)
    policy.parse_file_contents = lambda data: dict(parse(data))


def compile_patterns_once() -> None:
    """Have the module re keep all patterns: Nova has a thousand, and it keeps 512."""
    re._MAXCACHE = 10_000  # type: ignore[attr-defined]  # there is no public way


def make_validators_once(validators: Any) -> None:
    """Have Nova make the validator of a JSON schema before the schema's first use.

    :param validators: the module of Nova that has the validator.
    """
    made: dict[tuple[int, bool, bool], Any] = {}
    schemas: list[Any] = []  # in use, so that no other schema gets the id of one
    make = validators._SchemaValidator

    def validator(
        schema: Any, relax_additional_properties: bool = False, is_body: bool = True
    ) -> Any:
        key = (id(schema), relax_additional_properties, is_body)
        if key not in made:
            schemas.append(schema)
            made[key] = make(schema, relax_additional_properties, is_body)
        return made[key]

    validators._SchemaValidator = validator


def copy_of_placement() -> sqlite3.Connection:
    """Return a copy of Placement's present database."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    connection = db_api.get_placement_engine().raw_connection()
    connection.driver_connection.backup(copy)
    connection.close()
    return copy


def copy_to_placement(source: sqlite3.Connection) -> None:
    """Replace the data in Placement's present database by those of a copy."""
    connection = db_api.get_placement_engine().raw_connection()
    source.backup(connection.driver_connection)
    connection.close()
