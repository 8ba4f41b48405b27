"""The rows of ``reshape plan`` and ``allocation heal``, for plans made by hand."""

from types import SimpleNamespace
from typing import Any

from cpu_tiers.accounting.holdings import ConsumerId, Portion
from cpu_tiers.accounting.missing_shares import Addition, Owner, Shortfall
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.writers.allocation_heal import (
    COLUMNS,
    HEAL_COLUMNS,
    heal_rows,
    refusals,
    shortfall_rows,
)

GOLD = Flavor(name="gold", vcpus=1, memory_mb=1)


def addition(consumer: str, limits: dict[str, str] | None = None) -> Addition:
    owner = Owner(name=f"server {consumer}", server=f"{consumer}-uuid", flavor=GOLD)
    resources = {"VCPU": 1, "VCPU_SHARES": 100}
    shortfall = Shortfall(consumer=ConsumerId(consumer), owner=owner, resources=resources)
    goes_to = Portion.by_name({"one_NUMA0": resources})
    return Addition(shortfall=shortfall, goes_to=goes_to, limits=limits or {})


def plan(*additions: Addition) -> Any:
    return SimpleNamespace(host="one", additions=additions)


def values(row: tuple[object, ...], readable: str) -> list[object]:
    return [getattr(v, readable)() if isinstance(v, FormattedValue) else v for v in row]


def test_a_consumer_that_fits() -> None:
    (row,) = shortfall_rows([plan(addition("web"))])
    assert dict(zip(COLUMNS, values(row, "machine_readable"), strict=True)) == {
        "host": "one",
        "consumer": "web",
        "server": "web-uuid",
        "holder": "server web",
        "flavor": "gold",
        "adds": {"VCPU": 1, "VCPU_SHARES": 100},
        "fits": True,
        "reason": "",
        "goes_to": {"one_NUMA0": {"VCPU": 1, "VCPU_SHARES": 100}},
    }
    *_, adds, _, _, goes_to = values(row, "human_readable")
    assert adds == "VCPU 1\nVCPU_SHARES 100"
    assert goes_to == "one_NUMA0: VCPU 1, VCPU_SHARES 100"


def test_the_reason_names_every_provider_but_the_host() -> None:
    limits = {"one": "the host is full", "one_NUMA0": "the node is full"}
    (row,) = shortfall_rows([plan(addition("web", limits))])
    fits, reason = row[COLUMNS.index("fits")], row[COLUMNS.index("reason")]
    assert (fits, reason) == (False, "the host is full; one_NUMA0: the node is full")


def test_the_columns_of_ports_are_empty_for_consumers() -> None:
    (row,) = heal_rows([plan(addition("web"))])
    assert values(row, "machine_readable")[len(COLUMNS) :] == ["", []]
    assert len(row) == len(HEAL_COLUMNS)


def test_a_message_for_each_limit() -> None:
    plans = [plan(addition("fits")), plan(addition("web", {"one": "full", "one_NUMA0": "full"}))]
    messages = refusals(plans)
    assert len(messages) == 2
    assert all("server web" in message for message in messages)


def test_no_plans_have_no_rows() -> None:
    assert (shortfall_rows([]), heal_rows([plan()]), refusals([])) == ([], [], [])
