"""Which provider.yaml gives a provider shares."""

from typing import Any

import pytest

from cpu_tiers.nova.compute.tracker_run import file_with_shares

SHARES = "CUSTOM_VCPU_SHARES"


def config(file: str, *classes: str) -> dict[str, Any]:
    inventories = {"additional": [{name: {"total": 1}} for name in classes]}
    return {"__source_file": file, "inventories": inventories}


@pytest.mark.parametrize(
    ("configs", "file"),
    [
        pytest.param({}, None, id="no files"),
        pytest.param({"uuid-1": config("a", SHARES)}, "a", id="by uuid"),
        pytest.param({"one": config("a", "CUSTOM_X", SHARES)}, "a", id="by name"),
        pytest.param({"$COMPUTE_NODE": config("a", SHARES)}, "a", id="for all"),
        pytest.param({"two": config("a", SHARES)}, None, id="another host"),
        pytest.param({"one": config("a", "CUSTOM_X")}, None, id="another class"),
        pytest.param({"one": {"__source_file": "a", "traits": {}}}, None, id="traits alone"),
        pytest.param(
            {"$COMPUTE_NODE": config("a", SHARES), "one": config("b", "CUSTOM_X")},
            None,
            id="the host's own entry replaces the one for all",
        ),
    ],
)
def test_novas_rule_decides(configs: dict[str, Any], file: str | None) -> None:
    assert file_with_shares(configs, "one", "uuid-1") == file


def test_a_child_of_the_host_has_none_of_the_entry_for_all() -> None:
    configs = {"$COMPUTE_NODE": config("a", SHARES), "one_NUMA0": config("b", SHARES)}
    assert file_with_shares(configs, "one_NUMA1", "uuid-3", is_root=False) is None
    assert file_with_shares(configs, "one_NUMA0", "uuid-2", is_root=False) == "b"
