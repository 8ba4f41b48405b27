"""Names in the bodies of Placement. The other name is VCPU_SHARES or CUSTOM_VCPU_SHARES."""

import json
from typing import Any

import pytest

from cpu_tiers.model.names import OTHER_SHARES, VCPU_SHARES
from cpu_tiers.tools.placement.response import ShareNames

ONE, TWO, SERVER = (f"5f5a0a4e-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
INVENTORIES = f"/resource_providers/{ONE}/inventories"


def read(names: ShareNames, path: str, body: Any) -> Any:
    return json.loads(names.read(path, json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("path", "body", "others"),
    [
        pytest.param(INVENTORIES, {"inventories": {OTHER_SHARES: {"total": 1}}}, {ONE}, id="path"),
        pytest.param(INVENTORIES, {"inventories": {VCPU_SHARES: {"total": 1}}}, set(), id="ours"),
        pytest.param(
            f"/allocations/{SERVER}",
            {
                "allocations": {
                    ONE: {"resources": {OTHER_SHARES: 1}},
                    TWO: {"resources": {VCPU_SHARES: 1}},
                }
            },
            {ONE},
            id="a server in a move",
        ),
        pytest.param(
            "/allocation_candidates?resources=VCPU:1",
            {
                "allocation_requests": [{"allocations": {TWO: {"resources": {"VCPU": 1}}}}],
                "provider_summaries": {TWO: {"resources": {OTHER_SHARES: {"used": 0}}}},
            },
            {TWO},
            id="candidates",
        ),
        pytest.param("/usages", {"usages": {OTHER_SHARES: 1}}, set(), id="of no provider"),
    ],
)
def test_an_answer_has_our_name(path: str, body: Any, others: set[str]) -> None:
    names = ShareNames()
    renamed = json.loads(json.dumps(body).replace(f'"{OTHER_SHARES}"', f'"{VCPU_SHARES}"'))
    assert read(names, path, body) == renamed
    assert names.others == others


def test_a_provider_keeps_the_share_name_in_a_write() -> None:
    names = ShareNames()
    names.others = {ONE}
    allocations = {ONE: {"resources": {VCPU_SHARES: 1}}, TWO: {"resources": {VCPU_SHARES: 2}}}
    written = {ONE: {"resources": {OTHER_SHARES: 1}}, TWO: {"resources": {VCPU_SHARES: 2}}}
    body = {SERVER: {"allocations": allocations, "project_id": VCPU_SHARES}}
    kept = {SERVER: {"allocations": written, "project_id": VCPU_SHARES}}
    assert names.written("/allocations", body) == kept
    inventories = {"inventories": {VCPU_SHARES: {"total": 1}, "VCPU": {"total": 2}}}
    assert names.written(INVENTORIES, inventories) == {
        "inventories": {OTHER_SHARES: {"total": 1}, "VCPU": {"total": 2}}
    }
    assert names.written(INVENTORIES.replace(ONE, TWO), inventories) == inventories
    assert names.written("/traits/CUSTOM_A", None) is None


def test_a_provider_that_lost_the_other_share_name() -> None:
    names = ShareNames()
    names.others = {ONE, TWO}
    read(names, INVENTORIES, {"inventories": {"VCPU": {"total": 2}}})
    read(names, f"/allocations/{SERVER}", {"allocations": {TWO: {"resources": {VCPU_SHARES: 1}}}})
    assert names.others == set()


@pytest.mark.parametrize("content", [b"", b"<html>", f'{{"{OTHER_SHARES}": '.encode()])
def test_garbage_is_left_to_the_reader(content: bytes) -> None:
    assert ShareNames().read(INVENTORIES, content) == content


def test_the_list_of_classes_is_left_alone() -> None:
    body = {"resource_classes": [{"name": OTHER_SHARES}]}
    assert read(ShareNames(), "/resource_classes", body) == body
