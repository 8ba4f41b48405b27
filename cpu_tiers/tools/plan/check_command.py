"""``cpu-tiers plan check``: how far a plan is, and whether the rest of it still holds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.plan.progress import PlannedMove, progress_of, progress_verdict
from cpu_tiers.tools.plan.proof import Proof, missing
from cpu_tiers.tools.plan.read import hosts_named

_EXPECTED = "give what `cpu-tiers plan ... -f json` printed"


class PlanCheck(PlanCommand):
    """Say which migrations of a plan are done, which failed, and whether the rest still holds.

    ``-f shell`` prints the script of the rest. Exit status: 0 if all is done or the rest holds, 3
    if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "plan", metavar="PLAN.json", help="output of `cpu-tiers plan ... -f json`"
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        document = _read(parsed_args.plan)
        hosts = self.read(parsed_args)
        emptied = hosts_named(hosts, document["disable"], parsed_args.plan)
        hosts.disable(frozenset(emptied.values()))
        moves = _moves(hosts, document, parsed_args.plan)
        known = self.snapshot.servers.servers if self.snapshot.servers else {}
        progress = progress_of(hosts, moves, known)
        verdict, is_no = progress_verdict(progress, len(moves))
        stay = [*progress.failed, *progress.broken]
        return self.shown(
            hosts, progress.rest, verdict, stay, is_no=is_no, disable=document["disable"]
        )

    def proof(self, hosts: Hosts, plan: Plan) -> Proof:
        """Return nothing: the proof of the plan was about the cloud before it."""
        return Proof(None, missing(self.unread))


def _read(path: str) -> dict[str, Any]:
    """Return the moves and the hosts to disable of a saved plan.

    :raises InvalidInput: with every fault of the file.
    """
    faults = FaultList()
    at = DocumentPlace(path, faults)
    document = at.of(read_json(path, _EXPECTED), dict)
    moves = [
        _move(at / "moves" / number, move)
        for number, move in enumerate(at.get(document, "moves", list), start=1)
    ]
    if "moves" not in document:
        at.wrong(document, f"{_EXPECTED}, with the key moves")
    disable = [(at / "disable").of(name, str) for name in at.get(document, "disable", list)]
    faults.raise_if_any()
    return {"moves": moves, "disable": disable}


def _move(at: DocumentPlace, move: Any) -> dict[str, str]:
    values = {key: at.get(at.of(move, dict), key, str) for key in ("server", "from", "to")}
    for key, value in values.items():
        if not value and isinstance(move, dict) and isinstance(move.get(key, ""), str):
            (at / key).wrong(value, "give the value of the plan")
    return values


def _moves(hosts: Hosts, document: dict[str, Any], where: str) -> list[PlannedMove]:
    names = {move[key] for move in document["moves"] for key in ("from", "to")}
    roots = hosts_named(hosts, names, where)
    return [
        PlannedMove(move["server"], roots[move["from"]], roots[move["to"]])
        for move in document["moves"]
    ]
