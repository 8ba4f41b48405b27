"""Score all hosts of an answer, against decoding the answer with ``json.loads``.

Cold is the first server of a request: flatten the forest, score each host.
Warm is the next server of the same request: claim, score each host again. The
garbage collector runs as it does in a scheduler.
"""

import gc
import itertools
import json
import sys
import time
from collections.abc import Iterator

from answer import HOSTS, REQUESTED, REQUIRED, answer_text
from measure import Ratio, report

from cpu_tiers.weights import SCORINGS, Forest, Scoring

ROUNDS = 30
COLD_GOAL, WARM_GOAL = 0.4, 0.05


def one_round(text: str, scoring: Scoring) -> tuple[float, float, float]:
    """Return the seconds of decoding, of the first server and of the second server."""
    gc.collect()
    times = [time.perf_counter()]
    answer = json.loads(text)
    times.append(time.perf_counter())
    forest = Forest(answer["provider_summaries"], REQUESTED, REQUIRED, scoring=scoring)
    scores = forest.scores()
    times.append(time.perf_counter())
    best = max(scores, key=scores.__getitem__)
    second = time.perf_counter()
    forest.claim(best, REQUESTED)
    forest.scores()
    times.append(time.perf_counter() - second + times[-1])
    loads, cold, warm = (b - a for a, b in itertools.pairwise(times))
    return loads, cold, warm


def ratios(text: str) -> Iterator[Ratio]:
    """Yield the ratios of both scorings."""
    rounds = {name: list[tuple[float, float, float]]() for name in SCORINGS}
    for _ in range(ROUNDS):
        for name, scoring in SCORINGS.items():
            rounds[name].append(one_round(text, scoring))
    for name in SCORINGS:
        loads, cold, warm = (min(column) for column in zip(*rounds[name], strict=True))
        for what, took, goal in (("cold", cold, COLD_GOAL), ("warm", warm, WARM_GOAL)):
            detail = f"{took * 1e3:.2f} ms of {loads * 1e3:.2f} ms"
            yield Ratio(what=f"{name}, {what}", ratio=took / loads, goal=goal, detail=detail)


if __name__ == "__main__":
    text = answer_text()
    title = f"Score {HOSTS} hosts / json.loads of their answer ({len(text) / 1e6:.1f} MB)"
    sys.exit(report(title, ratios(text)))
