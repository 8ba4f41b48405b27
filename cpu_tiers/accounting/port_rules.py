"""Operations refused for a server with ports that request resources.

Spec: bandwidth-resource-provider, "Out of scope", "REST API impact". For drivers and services
with support for such ports: Nova has rules of its own for its API. Pure.
"""

from collections.abc import Iterable
from enum import Enum

from cpu_tiers.errors import FaultList, OperationRefused
from cpu_tiers.model.port import Port

SINCE = (2, 72)
"""Nova's microversion "server create supports ports with resource request"."""


class Operation(Enum):
    """An operation on a server. ``MOVE`` is a cold or live migration, resize or evacuation."""

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
    """Refuse an operation if the microversion of the request is too old for it.

    An operation that only frees resources is never refused.

    :param microversion: of the request to Nova's API.
    :raises OperationRefused: with every port that requests resources.
    """
    if operation in _FREES or microversion >= SINCE:
        return
    given = "microversion {}.{}".format(*microversion)
    _refuse(operation, ports, given, "use microversion {}.{} or newer".format(*SINCE))


def check_attach(ports: Iterable[Port]) -> None:
    """Refuse to attach a port that requests resources: the scheduler has chosen the host before.

    :raises OperationRefused: with every port that requests resources.
    """
    advice = "create a server with the port, or take the rule for a minimum off its QoS policy"
    _refuse(Operation.ATTACH, ports, "the server has its host already", advice)


def check_created_ports(ports: Iterable[Port]) -> None:
    """Refuse to boot with ports that nova-compute has created, after the host was chosen.

    :raises OperationRefused: with every port that requests resources.
    """
    given = "its network's QoS policy has a rule for a minimum, and the host was chosen before"
    _refuse(Operation.CREATE, ports, given, "create the port first, and boot with it")


def _refuse(operation: Operation, ports: Iterable[Port], given: str, advice: str) -> None:
    faults = FaultList()
    for port in ports:
        with faults:
            for group in port.request.groups:
                amounts = [f"{amount} of {name}" for name, amount in group.resources.items()]
                request = ", ".join(amounts or sorted(group.required)) or "traits"
                faults.add(
                    f"{operation.value}, port {port.id}",
                    f"it asks for {request}, but {given}",
                    advice,
                )
    if faults.faults:
        raise OperationRefused(faults.faults)
