"""What cannot be done with a server whose ports ask for resources, and why.

Spec: bandwidth-resource-provider, "Out of scope", "REST API impact". Pure.
"""

from collections.abc import Iterable
from enum import Enum

from cpu_tiers.errors import FaultList, OperationRefused
from cpu_tiers.model.port import Port

SINCE = (2, 72)
"""Nova's microversion that says "server create supports ports with resource request"."""


class Operation(Enum):
    """An operation on a server; every move is one: cold, live, resize, evacuate."""

    CREATE = "create"
    ATTACH = "attach"
    MOVE = "move"
    UNSHELVE = "unshelve"
    DETACH = "detach"
    DELETE = "delete"
    SHELVE_OFFLOAD = "shelve offload"


_FREES = frozenset({Operation.DETACH, Operation.DELETE, Operation.SHELVE_OFFLOAD})


def check_microversion(
    operation: Operation, ports: Iterable[Port], microversion: tuple[int, int]
) -> None:
    """Refuse an operation that its caller's microversion is too old for.

    What only frees resources is never refused.

    :param microversion: of the request to Nova's API.
    :raises OperationRefused: naming every port that asks for something.
    """
    if operation in _FREES or microversion >= SINCE:
        return
    given = "microversion {}.{}".format(*microversion)
    _refuse(operation, ports, given, "use microversion {}.{} or newer".format(*SINCE))


def check_attach(ports: Iterable[Port]) -> None:
    """Refuse to attach a port that asks for something: nobody would schedule it.

    :raises OperationRefused: naming every such port.
    """
    advice = "create a server with the port, or take the rule for a minimum off its QoS policy"
    _refuse(Operation.ATTACH, ports, "the server has its host already", advice)


def check_created_ports(ports: Iterable[Port]) -> None:
    """Refuse to boot with ports that were created of a network after scheduling.

    :raises OperationRefused: naming every port that asks for something.
    """
    given = "its network's QoS policy has a rule for a minimum, and the host was chosen before"
    _refuse(Operation.CREATE, ports, given, "create the port first, and boot with it")


def _refuse(operation: Operation, ports: Iterable[Port], given: str, advice: str) -> None:
    faults = FaultList()
    for port in ports:
        with faults:
            for group in port.request.groups:
                amounts = [f"{amount} of {name}" for name, amount in group.resources.items()]
                asked = ", ".join(amounts or sorted(group.required)) or "traits"
                faults.add(
                    f"{operation.value}, port {port.id}",
                    f"it asks for {asked}, but {given}",
                    advice,
                )
    if faults.faults:
        raise OperationRefused(faults.faults)
