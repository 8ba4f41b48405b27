"""All tests: the header of a run says how to repeat what it drew at random."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.draws import DAYS, SEED

# On a busy machine an example takes long; no test is about that.
settings.register_profile(
    "untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


def pytest_report_header() -> str:
    return f"drawn at random: CPU_TIERS_SEED={SEED} CPU_TIERS_DAYS={DAYS}"


@pytest.fixture(scope="session", autouse=True)
def check_each_schema_once() -> None:
    """Have jsonschema check a schema once, and not in each request.

    Placement passes its constant schemas to ``jsonschema.validate``, which checks the schema
    before the document: a tenth of the time of the tests with a Placement in the process.
    """
    if find_spec("jsonschema") is None:
        return
    validator: Any = import_module("jsonschema").Draft202012Validator
    check = validator.check_schema
    checked: dict[int, object] = {}  # with the schema, so that nothing else gets its id

    def check_once(schema: object, *args: Any, **kwargs: Any) -> None:
        if id(schema) not in checked:
            check(schema, *args, **kwargs)
            checked[id(schema)] = schema

    validator.check_schema = check_once
