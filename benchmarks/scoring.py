"""Score all hosts of an answer, against decoding the answer with ``json.loads``.

Cold is the first server of a request: flatten the forest, score each host.
Warm is the next server of the same request: claim, score each host again. The
garbage collector runs as it does in a scheduler.
"""

import gc
import json
import sys
import time
from collections.abc import Iterator

from answer import HOSTS, REQUESTED, REQUIRED, Answer, answer_text
from measure import Ratio, number_of_rounds, report

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights import SCORINGS, HostScoring, Scoring, make_forest
from cpu_tiers.weights.cost.amounts import HostTotals
from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.cost.typical_servers import ServerShape
from cpu_tiers.weights.soft_traits import SoftTraits

ROUNDS = number_of_rounds(30)
COLD_GOAL, WARM_GOAL = 0.4, 0.05
HOST_COLD_GOAL = 0.6
"""Of a scoring that reads capacity and use of each class, and not only what is free."""

TYPICAL_GOALS = 0.8, 0.4
"""Of a scoring that counts typical servers: it reads the candidates of each host, too."""

SEARCH_GOAL = 0.15

TYPICAL = 30
"""How many flavors nova-scheduler has seen, in the history of a scoring that counts them."""


def history() -> History:
    """Return the history of a scheduler that has seen servers of many flavors."""
    seen = History()
    for size in range(1, TYPICAL + 1):
        amounts = {"VCPU": size, "CUSTOM_VCPU_SHARES": 10 * size, "MEMORY_MB": 1024 * size}
        group = RequestGroup(resources=amounts)
        seen.note(ServerShape.from_groups([group]), HostTotals().scale())
    return seen


def one_round(text: str, scoring: Scoring, seen: History) -> tuple[float, float, float]:
    """Return the seconds of decoding, of the first server and of the second server."""
    gc.collect()
    start = time.process_time()
    answer = json.loads(text)
    loads = time.process_time() - start
    candidates = by_host(answer)
    start = time.process_time()
    summaries = answer["provider_summaries"]
    forest = make_forest(summaries, REQUESTED, REQUIRED, scoring=scoring, history=seen)
    if scoring.counts_typical:
        for root, offered in candidates.items():
            forest.offer(root, [amounts(candidate) for candidate in offered])
    scores = forest.scores()
    cold = time.process_time() - start
    best = max(scores, key=scores.__getitem__)
    start = time.process_time()
    forest.claim(best, REQUESTED)
    forest.scores()
    return loads, cold, time.process_time() - start


def by_host(answer: Answer) -> dict[str, list[Answer]]:
    """Return the candidates by root provider, as nova-scheduler has them with any weigher."""
    candidates: dict[str, list[Answer]] = {}
    for request in answer["allocation_requests"]:
        (root,) = request["mappings"][""]
        candidates.setdefault(root, []).append(request)
    return candidates


def amounts(candidate: Answer) -> dict[str, dict[str, int]]:
    """Return the amounts of a candidate, as the weigher does."""
    return {uuid: each["resources"] for uuid, each in candidate["allocations"].items()}


def ratios(text: str) -> Iterator[Ratio]:
    """Yield the ratios of all scorings."""
    rounds = {name: list[tuple[float, float, float]]() for name in SCORINGS}
    seen = history()
    for _ in range(ROUNDS):
        for name, scoring in SCORINGS.items():
            rounds[name].append(one_round(text, scoring, seen))
    for name, scoring in SCORINGS.items():
        goals = TYPICAL_GOALS if scoring.counts_typical else (COLD_GOAL, WARM_GOAL)
        if isinstance(scoring, HostScoring):
            goals = HOST_COLD_GOAL, WARM_GOAL
        loads, cold, warm = (min(column) for column in zip(*rounds[name], strict=True))
        for what, took, goal in (("cold", cold, goals[0]), ("warm", warm, goals[1])):
            detail = f"{took * 1e3:.2f} ms of {loads * 1e3:.2f} ms"
            yield Ratio(what=f"{name}, {what}", ratio=took / loads, goal=goal, detail=detail)
    yield search(text)


def search(text: str) -> Ratio:
    """Return the ratio of the search for soft traits, of which no host has any."""
    avoided = SoftTraits({"PRESSURE_*": -1.0, "CUSTOM_PRESSURE_*": -1.0}, {})
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        summaries = json.loads(text)["provider_summaries"]
        read = time.process_time()
        assert not avoided.of_hosts(summaries)
        rounds.append((read - start, time.process_time() - read))
    loads, took = (min(column) for column in zip(*rounds, strict=True))
    detail = f"{took * 1e3:.2f} ms of {loads * 1e3:.2f} ms"
    return Ratio(what="no soft trait", ratio=took / loads, goal=SEARCH_GOAL, detail=detail)


if __name__ == "__main__":
    text = answer_text()
    title = f"Score {HOSTS} hosts / json.loads of their answer ({len(text) / 1e6:.1f} MB)"
    sys.exit(report(title, ratios(text)))
