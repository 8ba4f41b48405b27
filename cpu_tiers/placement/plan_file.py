"""A plan of where servers go, kept in a file until Placement is there.

For fast-forward upgrades, when the control plane is down: what is worked out
beforehand is carried out later, if servers still hold what they held. Pure.

The document (JSON)::

    {"host": "compute1",
     "consumers": {UUID: {"name": "server web-1 (…), flavor gold",
                          "held": {"VCPU": 2, "MEMORY_MB": 1024},
                          "resources": {"compute1_NUMA0": {"VCPU": 2},
                                        "compute1_NUMA0_PAGES_4": {"MEMORY_MB": 1024}}}}}

``held`` is of the host's root, and ``resources`` adds up to it. Shares are in
both also where a consumer lacks them, and gets them on its way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cpu_tiers.accounting.relocation import OF_NODES, Held, Relocation, ServersDoNotFit
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES

_AGAIN = "make the plan again"


def plan_document(host: str, relocations: Iterable[Relocation]) -> dict[str, Any]:
    """Return a plan as it is kept in a file.

    :param relocations: as :func:`~cpu_tiers.accounting.relocation.relocate` or
        :func:`~cpu_tiers.placement.numa_reshape.plan_reshape` have found them.
    """
    return {
        "host": host,
        "consumers": {
            relocation.consumer: {
                "name": relocation.name,
                "held": relocation.amounts,
                "resources": {name: dict(r) for name, r in relocation.resources.items()},
            }
            for relocation in relocations
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan that was read from a file; it says where consumers go, as planned."""

    host: str
    relocations: Mapping[str, Relocation]

    def __call__(self, tree: ProviderTree, held: Held, used: Held) -> tuple[Relocation, ...]:
        """Return where those go that hold something of the root now.

        One that is in the plan and holds nothing any more is left out; one
        without its shares gets them. Whether all fits, Placement tells.

        :raises ServersDoNotFit: the plan is of another host, or not of today.
        """
        if tree.root.name != self.host:
            raise ServersDoNotFit.of(
                f"the plan of {self.host}", f"is for {tree.root.name}", _AGAIN
            )
        names = {provider.name for provider in tree.providers}
        faults = FaultList()
        for consumer, resources in sorted(held.items()):
            with faults:
                self._check(consumer, _of_nodes(resources), names)
        faults.raise_if_any()
        return tuple(self.relocations[consumer] for consumer in sorted(held))

    def _check(self, consumer: str, now: Mapping[str, int], names: set[str]) -> None:
        planned = self.relocations.get(consumer)
        if planned is None:
            raise ServersDoNotFit.of(f"consumer {consumer}", "is not in the plan", _AGAIN)
        if now not in (planned.amounts, _without_shares(planned.amounts)):
            given = f"holds {_text(now)}, but {_text(planned.amounts)} when the plan was made"
            raise ServersDoNotFit.of(planned.name, given, _AGAIN)
        if unknown := planned.resources.keys() - names:
            given = f"goes to {', '.join(sorted(unknown))}, which the host does not have"
            raise ServersDoNotFit.of(planned.name, given, _AGAIN)


def read_plan(document: object, *, where: str) -> SavedPlan:
    """Return the plan in a document.

    :param where: what to call the document in an error.
    :raises InvalidInput: with every consumer that is malformed.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("host"), str):
        raise InvalidInput.of(where, "no plan with a host", _AGAIN)
    consumers = document.get("consumers")
    if not isinstance(consumers, Mapping):
        raise InvalidInput.of(where, "no consumers", _AGAIN)
    faults = FaultList()
    relocations = {}
    for uuid, body in consumers.items():
        with faults:
            relocations[uuid] = _relocation(uuid, body, where)
    faults.raise_if_any()
    return SavedPlan(host=document["host"], relocations=relocations)


def _relocation(uuid: str, body: Any, where: str) -> Relocation:
    place = f"{where}, consumer {uuid}"
    try:
        resources = {str(p): _amounts(r) for p, r in body["resources"].items()}
        found = Relocation(consumer=uuid, name=str(body["name"]), resources=resources)
        adds_up = found.amounts == _amounts(body["held"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput.of(place, "not as a plan is written", _AGAIN) from error
    if not adds_up or not resources:
        raise InvalidInput.of(place, "resources do not add up to what is held", _AGAIN)
    return found


def _amounts(body: Any) -> dict[str, int]:
    for name, amount in body.items():
        if name not in OF_NODES or type(amount) is not int or amount < 1:
            raise ValueError(f"{amount!r} {name!r}")
    return dict(body)


def _of_nodes(resources: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in resources.items() if name in OF_NODES}


def _without_shares(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if name != VCPU_SHARES}


def _text(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{amounts[name]} {name}" for name in sorted(amounts))
