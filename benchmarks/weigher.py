"""Weigh 1,000 host states through Nova's own handler, against its RAMWeigher.

Warm means every server of a request except the first: the forest exists already, and a single
host has changed. With the multiplier 0.0 the weigher is loaded, but not used. Nova has to be
installed (dependency group ``bench``).
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import gc
import sys
import warnings
from collections.abc import Iterator

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    from nova import objects
    from nova.scheduler.host_manager import HostState
    from nova.scheduler.weights import BaseHostWeigher, HostWeightHandler
    from nova.scheduler.weights.ram import RAMWeigher

    import cpu_tiers.nova.scheduler.scores
    from cpu_tiers.nova.notes import HostNotes
    from cpu_tiers.nova.options import CONF
    from cpu_tiers.nova.scheduler.weigher import MULTIPLIER, ResourceProviderWeigher

from answer import HOSTS, REQUESTED, answer
from measure import Ratio, number_of_rounds, report, seconds

ROUNDS = number_of_rounds(60)
GOALS = {1.0: ("warm", 1.2), 0.0: ("multiplier 0.0", 1.0)}


def request_spec() -> objects.RequestSpec:
    """Return a request for a gold server."""
    flavor = objects.Flavor(
        name="gold",
        vcpus=4,
        memory_mb=8192,
        root_gb=20,
        ephemeral_gb=0,
        swap=0,
        extra_specs={"quota:cpu_shares_multiplier": "100"},
    )
    return objects.RequestSpec(flavor=flavor, image=None, requested_resources=[], is_bfv=False)


def host_states(spec: objects.RequestSpec) -> list[HostState]:
    """Return the host states of a request: in aggregates, and with a common answer."""
    summaries = answer(HOSTS)["provider_summaries"]
    shared = cpu_tiers.nova.scheduler.scores.RequestScores(summaries, spec)
    roots = [uuid for uuid, one in summaries.items() if one["parent_provider_uuid"] is None]
    aggregates = [objects.Aggregate(metadata={"availability_zone": f"az{i}"}) for i in range(3)]
    states = []
    for index, root in enumerate(roots):
        state = HostState(f"compute{index}", f"compute{index}", "cell")
        state.uuid, state.free_ram_mb, state.aggregates = root, 1024 * index, aggregates
        state.cpu_tiers = HostNotes(scores=shared)
        states.append(state)
    return states


def ratios() -> Iterator[Ratio]:
    """Yield the ratio at each multiplier."""
    spec, handler = request_spec(), HostWeightHandler()
    ours, rams = ResourceProviderWeigher(), RAMWeigher()
    states = host_states(spec)

    def weigh(weigher: BaseHostWeigher) -> float:
        gc.collect()
        return seconds(lambda: handler.get_weighed_objects([weigher], states, spec))

    for multiplier, (what, goal) in GOALS.items():
        CONF.set_override(MULTIPLIER, multiplier, group="filter_scheduler")
        weigh(ours)
        rounds = []
        for index in range(ROUNDS):
            states[index].cpu_tiers.scores.forest.claim(states[index].uuid, REQUESTED)
            rounds.append((weigh(ours), weigh(rams)))
        mine, theirs = (min(column) for column in zip(*rounds, strict=True))
        detail = f"{mine * 1e3:.2f} ms of {theirs * 1e3:.2f} ms"
        yield Ratio(what=what, ratio=mine / theirs, goal=goal, detail=detail)


if __name__ == "__main__":
    objects.register_all()
    CONF([], default_config_files=[])
    sys.exit(report(f"Weigh {HOSTS} host states / Nova's RAMWeigher", ratios()))
