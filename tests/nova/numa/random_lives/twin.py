"""The twin of a random life: the same steps, servers and faults on a cloud with every option off.

No server of the life may be worse off than its twin. Before each step, the servers of the twin are
where the servers of the life are: where a step of the life succeeds, the twin is steered to the
same host and NUMA nodes. Where a step of the life leaves a server in ERROR or as it was, Nova
alone decides what happens to the twin.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fixtures
from nova.virt import hardware

from tests.nova.broken_answers import BrokenAnswers, Case
from tests.nova.numa.pinning import OPTIONS_OFF
from tests.nova.numa.random_lives.checker import Resident
from tests.nova.numa.random_lives.cloud import LifeCloud
from tests.nova.numa.random_lives.guests import Guest
from tests.nova.numa.random_lives.machine import BODIES, RandomLife, told
from tests.nova.numa.random_lives.record import State, Step
from tests.nova.numa.random_lives.steering import AIM, FIT_CELL, SteeringFilter, steered
from tests.nova.traffic import path_of

BOOTS = {"boot_one": 1, "boot_five": 5}
MOVES = (
    *("attach_or_detach", "change_tier", "end_resize", "evacuate", "migrate", "migrate_live"),
    *("resize", "shelve", "unshelve"),
)
"""The steps that change a server if they succeed."""
RESTARTS = ("switch_shares_on", "switch_nodes_on", "heal")
"""The steps that are about options of cpu-tiers."""


def by_status(state: State) -> str:
    """Return a key for sorting, with the servers in ERROR last."""
    return state.status


class TwinLost(Exception):
    """The servers of the twin cannot be brought to where the servers of the life are."""


class StruckAnswers(BrokenAnswers):
    """Answers all requests of Nova: with the fault of a case, if they are struck."""

    struck: frozenset[str] = frozenset()

    def __call__(self, send: Any, method: str, url: str) -> Any:
        is_struck = path_of(method, url) in self.struck
        return super().__call__(send, method, url) if is_struck else send()


class TwinCloud(LifeCloud):
    """A cloud with every option off."""

    kind = replace(OPTIONS_OFF, filters=("NUMATopologyFilter", "SteeringFilter"))
    extends_cpu_policies = False
    tier_change = None

    def setUp(self) -> None:
        AIM.clear()
        own = f"{SteeringFilter.__module__}.SteeringFilter"
        every = ["nova.scheduler.filters.all_filters", own]
        self.flags(available_filters=every, group="filter_scheduler")
        super().setUp()
        fit_cell = steered(hardware._numa_fit_instance_cell)
        self.useFixture(fixtures.MonkeyPatch(FIT_CELL, fit_cell))
        self.broken = self.traffic.answer = StruckAnswers()
        self.traffic.usual = ()  # each request of Nova may fail

    def specs_of(self, guest: Guest) -> dict[str, str]:
        """Return the extra specs of a guest in Nova's own terms."""
        return replace(guest, by_amounts=False).specs()


class Twin(RandomLife):
    """Follows the steps of a life."""

    @told
    def follow(self, steps: Sequence[Step]) -> None:
        """Do the steps of a life, which fails if one of its servers is worse off than its twin."""
        self.cloud = TwinCloud("runTest")
        self.cloud.setUp()
        try:
            self.cloud.restart_scheduler(
                query_placement_for_numa=False, query_placement_for_vcpu_shares=False
            )
            for host in self.hosts:
                self.cloud.begin(host, nodes=None, shares=False)
            for number, step in enumerate(steps):
                self.number = number
                self.follow_step(step)
            self.tell("the twin has done all", len(steps), "steps")
        except (TwinLost, AssertionError) as error:
            self.tell("the twin has done", self.number, "of", len(steps), f"steps: {error}")
        finally:
            self.cloud.end()

    def follow_step(self, step: Step) -> None:
        """Take a step, and compare the states of all servers."""
        AIM.clear()
        AIM.aware_only = step.aware_only
        if step.name in BOOTS:
            self.take_boot(step)
        elif step.name in RESTARTS:
            for host in self.hosts:
                self.cloud.restart(host)
        else:
            self.take_other(step)

    def take_other(self, step: Step) -> None:
        """Take a step that boots no server, steered if the step succeeded in the life."""
        ranks = step.ranks()
        if step.name in MOVES and ranks[step.number] == 2:
            moved = step.after[step.number]
            self.steer(moved)
        has_failed = 0 in ranks or (step.name in MOVES and 2 not in ranks)
        self.do(step, step.case if has_failed else None)
        self.compare(step, list(map(self.state_of, self.residents)), step.after)
        for resident, state in [*zip(self.residents, step.after, strict=True)]:
            if state.status == "ERROR":
                self.remove(resident)
            elif self.state_of(resident) != state:
                self.mirror(resident, state)

    def do(self, step: Step, case: Case | None) -> None:
        """Do what the life did in a step."""
        self.cloud.broken.struck = step.struck
        values = {**step.values, "case": case} if "case" in step.values else step.values
        residents = (self.residents[step.number],) if step.has_server else ()
        BODIES[step.name](self, *residents, **values)

    def take_boot(self, step: Step) -> None:
        """Boot each server where it is in the life, or all in one request if one is in ERROR."""
        new = step.after[len(step.before) :]
        if any(state.status == "ERROR" for state in new):
            self.try_boot(step, new)
        for state in new:
            if state.status == "ACTIVE":
                self.boot_at(state, volume=step.values.get("volume", False))

    def try_boot(self, step: Step, new: list[State]) -> None:
        """Boot servers as the life did, compare how many of them there are, and delete them."""
        self.do(step, step.case)
        booted = self.residents[len(step.before) :]
        twins = sorted(map(self.state_of, booted), key=by_status)
        self.compare(step, twins, sorted(new, key=by_status))
        for resident in booted:
            self.remove(resident)

    def steer(self, state: State) -> None:
        """Let servers go only where a server of the life is."""
        AIM.host, AIM.cells = state.host, state.cells
        names = self.cloud.tree.names()
        if state.interfaces:
            own = {uuid for uuid, name in names.items() if name in state.interfaces}
            every = {uuid for uuid, name in names.items() if "NIC Switch agent:" in name}
            AIM.closed = frozenset(every - own)

    def compare(self, step: Step, twins: Sequence[State], ours: Sequence[State]) -> None:
        """Fail if a server of the life is worse off than its twin."""
        befores = [None] * len(ours) if step.name in BOOTS else step.before
        for own, twin, before in zip(ours, twins, befores, strict=True):
            if own.rank(before) >= twin.rank(before):
                continue
            if step.may_refuse(own, before):
                self.tell("step", self.number, "is refused, and may be so")
            else:
                self.story.failure += f"step {self.number}, {step}: {own}, but the twin {twin}\n"

    def boot_at(self, state: State, *, volume: bool) -> None:
        """Boot a server in a place."""
        self.steer(state)
        self.boot(state.guest, state.ports, volume=volume, count=1, case=None)
        found = self.state_of(self.residents[-1])
        if found != state:
            raise TwinLost(f"{found} instead of {state}")

    def mirror(self, resident: Resident, state: State) -> None:
        """Replace a server that is elsewhere than in the life."""
        if state.status != "ACTIVE":
            raise TwinLost(f"{self.state_of(resident)} instead of {state}")
        number = self.residents.index(resident)
        self.remove(resident)
        self.boot_at(state, volume=resident.has_volume)
        self.residents.insert(number, self.residents.pop())

    def remove(self, resident: Resident) -> None:
        """Delete a server."""
        if resident.uuid:
            self.cloud.delete(resident.uuid)
        self.residents.remove(resident)

    def check(self, case: Case | None, *, is_boot: bool = False) -> None:
        self.look()
