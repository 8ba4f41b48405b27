"""A plan of relocations, kept in a file until Placement is up again. Pure.

A plan is carried out only if the allocations of its consumers are unchanged. The document (JSON)::

    {"host": "compute1",
     "consumers": {UUID: {"name": "server web-1 (…), flavor gold",
                          "held": {"VCPU": 2, "MEMORY_MB": 1024},
                          "resources": {"compute1_NUMA0": {"VCPU": 2},
                                        "compute1_NUMA0_PAGES_4": {"MEMORY_MB": 1024}}}},
     "digest": "sha256:…"}

``held`` is what the consumer holds of the root provider of the host, and ``resources`` adds up to
it. Both include the shares that a consumer lacks and is going to get with the move. ``digest`` is
computed from the rest of the document: a plan that was edited or merged with another is refused.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion, ProviderName
from cpu_tiers.accounting.relocation import Relocation, ServersDoNotFit
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import MAX_AMOUNT, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES

_AGAIN = "make the plan again"


def plan_document(host: str, relocations: Iterable[Relocation]) -> dict[str, Any]:
    """Return the document of a plan."""
    consumers: dict[str, Any] = {
        each.consumer: {
            "name": each.name,
            "held": each.amounts,
            "resources": each.resources.to_json(),
        }
        for each in relocations
    }
    return {"host": host, "consumers": consumers, "digest": digest_of(host, consumers)}


def digest_of(host: str, consumers: Mapping[str, Any]) -> str:
    """Return the digest of a plan, by the values of two keys of its document."""
    text = json.dumps([host, consumers], sort_keys=True)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan that was read from a file, as a function that returns the relocations."""

    host: str
    relocations: Mapping[ConsumerId, Relocation]

    def __call__(
        self,
        tree: ProviderTree,
        root_amounts: Mapping[ConsumerId, Amounts],
        used: Portion[ProviderName],
    ) -> tuple[Relocation, ...]:
        """Return the planned relocations of the consumers that hold something of the root now.

        A consumer of the plan that holds nothing any more is left out. A consumer
        without its shares is accepted, and gets the shares with the move. Placement
        itself checks whether everything fits, so ``used`` is not looked at.

        :raises ServersDoNotFit: the plan is for another host, or a consumer
            holds something else than when the plan was made.
        """
        if tree.root.name != self.host:
            raise ServersDoNotFit.of(
                f"the plan of {self.host}", f"is for {tree.root.name}", _AGAIN
            )
        names = {provider.name for provider in tree.providers}
        faults = FaultList()
        for consumer, amounts in sorted(root_amounts.items()):
            with faults:
                node_amounts = {name: n for name, n in amounts.items() if name in OF_NODES}
                self._check(consumer, node_amounts, names)
        faults.raise_if_any()
        return tuple(self.relocations[consumer] for consumer in sorted(root_amounts))

    def _check(self, consumer: ConsumerId, now: Amounts, names: set[str]) -> None:
        planned = self.relocations.get(consumer)
        if planned is None:
            raise ServersDoNotFit.of(f"consumer {consumer}", "is not in the plan", _AGAIN)
        without_shares = {n: a for n, a in planned.amounts.items() if n != VCPU_SHARES}
        if now not in (planned.amounts, without_shares):
            given = f"holds {_text(now)}, but {_text(planned.amounts)} when the plan was made"
            raise ServersDoNotFit.of(planned.name, given, _AGAIN)
        if unknown := planned.resources.keys() - names:
            given = f"goes to {', '.join(sorted(unknown))}, which the host does not have"
            raise ServersDoNotFit.of(planned.name, given, _AGAIN)


def read_plan(document: object, *, where: str) -> SavedPlan:
    """Return the plan in a document.

    :raises InvalidInput: with every consumer whose entry is malformed; or the document was
        changed after the plan was made.
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
            relocations[ConsumerId(uuid)] = _relocation(ConsumerId(uuid), body, where)
    faults.raise_if_any()
    if document.get("digest") != digest_of(document["host"], consumers):
        raise InvalidInput.of(where, "was changed after the plan was saved", _AGAIN)
    return SavedPlan(host=document["host"], relocations=relocations)


def _relocation(uuid: ConsumerId, body: Any, where: str) -> Relocation:
    place = f"{where}, consumer {uuid}"
    try:
        resources = Portion.by_name({str(p): _amounts(a) for p, a in body["resources"].items()})
        relocation = Relocation(consumer=uuid, name=str(body["name"]), resources=resources)
        adds_up = relocation.amounts == _amounts(body["held"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput.of(place, "not as a plan is written", _AGAIN) from error
    if not adds_up or not resources:
        raise InvalidInput.of(place, "resources do not add up to what is held", _AGAIN)
    return relocation


def _amounts(body: Any) -> dict[str, int]:
    for name, amount in body.items():
        if name not in OF_NODES or type(amount) is not int or not 1 <= amount <= MAX_AMOUNT:
            raise ValueError(f"{amount!r} {name!r}")
    return dict(body)


def _text(amounts: Amounts) -> str:
    return ", ".join(f"{amounts[name]} {name}" for name in sorted(amounts))
