import json
from collections.abc import Mapping
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion
from cpu_tiers.accounting.relocation import Relocation, ServersDoNotFit
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.writers.plan_file import SavedPlan, digest_of, plan_document, read_plan

HELD = {"VCPU": 2, "MEMORY_MB": 1024}
RESOURCES = {"cn_NUMA0": {"VCPU": 2}, "cn_NUMA0_PAGES_4": {"MEMORY_MB": 1024}}
TREE = ProviderTree(
    providers=tuple(
        ResourceProvider(name=name, parent=parent)
        for name, parent in (("cn", None), ("cn_NUMA0", "cn"), ("cn_NUMA0_PAGES_4", "cn_NUMA0"))
    ),
    managed_classes=frozenset(),
)


def document(**consumers: Any) -> dict[str, Any]:
    return {"host": "cn", "consumers": consumers, "digest": digest_of("cn", consumers)}


def consumer(**changes: Any) -> dict[str, Any]:
    return {"name": "server a", "held": HELD, "resources": RESOURCES, **changes}


def moves(plan: SavedPlan, of_root: Mapping[str, Amounts]) -> tuple[Relocation, ...]:
    return plan(TREE, {ConsumerId(c): amounts for c, amounts in of_root.items()}, Portion())


def test_a_consumer_with_the_planned_amounts_goes_to_the_planned_nodes() -> None:
    saved = read_plan(document(a=consumer(), gone=consumer()), where="plan.json")
    (a,) = moves(saved, {"a": {**HELD, "DISK_GB": 5}})
    assert (a.consumer, a.name, a.resources.to_json()) == ("a", "server a", RESOURCES)


def test_missing_shares_are_added_and_different_shares_are_refused() -> None:
    shares = {VCPU_SHARES: 200}
    resources = RESOURCES | {"cn_NUMA0": {"VCPU": 2} | shares}
    body = consumer(held=HELD | shares, resources=resources)
    saved = read_plan(document(a=body, b=body, c=body), where="")
    a, b = moves(saved, {"a": HELD, "b": HELD | shares})
    assert a.amounts == b.amounts == HELD | shares
    with pytest.raises(ServersDoNotFit, match="holds 100 CUSTOM_VCPU_SHARES, 1024"):
        moves(saved, {"a": HELD, "c": HELD | {VCPU_SHARES: 100}})


def test_a_plan_of_another_host() -> None:
    other = plan_document("cn2", ())
    with pytest.raises(ServersDoNotFit, match="the plan of cn2: is for cn"):
        moves(read_plan(other, where=""), {})


def test_a_node_that_the_host_has_no_longer() -> None:
    resources = {"cn_NUMA3": {"VCPU": 2}, "cn_NUMA0_PAGES_4": {"MEMORY_MB": 1024}}
    saved = read_plan(document(a=consumer(resources=resources)), where="")
    with pytest.raises(ServersDoNotFit, match="goes to cn_NUMA3, which the host does not have"):
        moves(saved, {"a": HELD})


@pytest.mark.parametrize(
    "body", [[], None, {}, {"host": 1, "consumers": {}}, {"host": "cn", "consumers": []}]
)
def test_documents_that_are_no_plan(body: object) -> None:
    with pytest.raises(InvalidInput, match=r"plan\.json: no "):
        read_plan(body, where="plan.json")


def test_every_consumer_that_is_malformed() -> None:
    bad = document(
        a=consumer(held={"VCPU": 3, "MEMORY_MB": 1024}),
        b=consumer(resources={}, held={}),
        c=consumer(resources={"cn_NUMA0": {"VCPU": "2"}}),
        d=consumer(held={"DISK_GB": 1}),
        e={"name": "e"},
        f=7,
        g=consumer(),
    )
    with pytest.raises(InvalidInput) as caught:
        read_plan(bad, where="plan.json")
    assert [fault.where for fault in caught.value.faults] == [
        f"plan.json, consumer {name}" for name in "abcdef"
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"host": "cn2"}, id="another host"),
        pytest.param({"consumers": {}}, id="no server any more"),
        pytest.param({"consumers": {"a": consumer(name="server b")}}, id="another name"),
        pytest.param({"digest": None}, id="no digest"),
    ],
)
def test_a_plan_that_was_edited(change: dict[str, Any]) -> None:
    read_plan(document(a=consumer()), where="plan.json")
    with pytest.raises(InvalidInput, match=r"plan\.json: was changed after the plan was saved"):
        read_plan(document(a=consumer()) | change, where="plan.json")


def test_a_plan_read_equals_the_plan_saved() -> None:
    saved = read_plan(document(b=consumer(name="web \u2603"), a=consumer()), where="")
    text = json.dumps(
        plan_document("cn", saved.relocations.values()), indent=2, ensure_ascii=False
    )
    assert read_plan(json.loads(text), where="") == saved
