import pytest

from cpu_tiers.accounting.port_rules import (
    Operation,
    check_attach,
    check_created_ports,
    check_microversion,
)
from cpu_tiers.errors import OperationRefused
from cpu_tiers.model.port import Port

EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"
PLAIN = Port(id="plain")
QOS = Port(id="qos", resource_request={"resources": {EGRESS: 1000}})
QOS_2 = Port(id="qos2", resource_request={"required": ["CUSTOM_BEST_EFFORT_BW"]})

TAKES = [Operation.CREATE, Operation.ATTACH, Operation.MOVE, Operation.UNSHELVE]
FREES = [Operation.DETACH, Operation.DELETE, Operation.SHELVE_OFFLOAD]


@pytest.mark.parametrize("operation", TAKES)
def test_older_microversions_are_refused(operation: Operation) -> None:
    check_microversion(operation, [PLAIN, QOS], (2, 72))
    check_microversion(operation, [PLAIN], (2, 1))
    with pytest.raises(OperationRefused, match=r"use microversion 2\.72 or newer") as error:
        check_microversion(operation, [PLAIN, QOS, QOS_2], (2, 71))
    assert [(fault.where, fault.given) for fault in error.value.faults] == [
        (f"{operation.value}, port qos", f"it asks for 1000 of {EGRESS}, but microversion 2.71"),
        (
            f"{operation.value}, port qos2",
            "it asks for CUSTOM_BEST_EFFORT_BW, but microversion 2.71",
        ),
    ]


@pytest.mark.parametrize("operation", FREES)
def test_an_operation_that_frees_is_never_refused(operation: Operation) -> None:
    check_microversion(operation, [QOS], (2, 1))


def test_every_operation_either_takes_or_frees() -> None:
    assert {*TAKES, *FREES} == set(Operation)


def test_attach() -> None:
    check_attach([PLAIN])
    with pytest.raises(OperationRefused, match=r"attach, port qos: it asks for 1000 .* already"):
        check_attach([PLAIN, QOS])


def test_a_network_with_a_rule_at_boot() -> None:
    check_created_ports([PLAIN])
    with pytest.raises(OperationRefused, match=r"create, port qos: .*create the port first"):
        check_created_ports([QOS])
