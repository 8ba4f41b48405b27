"""First reshapes of a host in which each request and each query of cpu-tiers fails in each way.

The host has servers while every option of cpu-tiers is off. In each case reporting is switched on,
and nova-compute starts with a fault, runs its periodic task, and starts again without a fault.
After each case the data of Placement are put back.
"""

import random
from collections import Counter
from collections.abc import Mapping
from unittest import mock

from nova.compute.resource_tracker import ResourceTracker
from nova.context import get_admin_context
from nova.scheduler.client import report

from cpu_tiers.nova.compute.features import COMPUTE
from tests import draws, made_once
from tests.nova import script
from tests.nova.broken_answers import DATABASE_FAULTS, BrokenAnswers, Case, cases_of
from tests.nova.computes import MULTIPLIER, Computes, ProcessEnded
from tests.nova.faulty_life import draw
from tests.nova.placement_rows import PlacementRows, Rows, placement_rows
from tests.nova.reshapes import POWER_OFF, RPC
from tests.nova.traffic import BY_NOVA, Traffic

SWITCHES: Mapping[str, tuple[bool, bool | None]] = {
    "shares": (True, None),
    "nodes": (False, True),
    "shares and nodes": (True, True),
}
"""Whether the host is going to report shares, and NUMA nodes."""

TIER = {MULTIPLIER: "2.5"}
TWO_NODES = {"hw:numa_nodes": "2"}
UNCERTAIN = f"POST /reshaper{BY_NOVA}", "empty 200"
"""A proxy answers 200 instead of Placement, and Nova takes the transaction for carried out. Nova
then writes the inventories without the allocations, as after each reshape of its own, or stops
with ``PlacementPciException`` because Placement refuses to remove inventories in use."""


class FaultyStart(Computes):
    """Starts of the host ``one``; in each start is at most one fault."""

    kind = script.OFF
    figures: list[str]
    breaches: list[str]

    def setUp(self) -> None:
        self.flags(periodic_enable=False, report_interval=0, service_down_time=3600)
        super().setUp()
        self.broken = {"request": BrokenAnswers(), "query": BrokenAnswers(DATABASE_FAULTS)}
        self.traffic = self.useFixture(Traffic(self.broken["request"], self.broken["query"]))
        self.done: Counter[str] = Counter()
        self.start_host("one")
        self.start_host("two")
        self.boot_servers()
        self.restart("one")  # nova-compute ends the tasks that it cannot go on with
        begin = len(self.traffic.sent)
        self.start()
        self.traffic.usual = frozenset(self.traffic.sent[begin:])
        self.before, self.copy = placement_rows(), made_once.copy_of_placement()
        self.statuses = self.statuses_of_servers()
        # Nova itself has something new to report, too.
        self.flags(reserved_host_disk_mb=2048)

    def boot_servers(self) -> None:
        """Have servers of all kinds on the host ``one``: at rest, on their way, and gone."""
        self.boot_on("one", self.flavor("no tier"))
        tier = self.flavor("tier", TIER, disk_gb=1)
        shelved = self.boot_on("one", tier)
        self.api.post_server_action(shelved, {"shelve": {}})
        self._wait_for_state_change({"id": shelved}, "SHELVED_OFFLOADED")
        wide = self.boot_on("one", self.flavor("wide", TIER | TWO_NODES, vcpus=2))
        moving = self.boot_on("one", tier)
        with mock.patch(POWER_OFF, return_value="{}"):
            self._resize_server({"id": wide}, self.flavor("wider", TIER | TWO_NODES, vcpus=4))
        with mock.patch(f"{RPC}.prep_resize") as lost:
            self.api.post_server_action(moving, {"migrate": None})
            self._wait_for_assert(lost.assert_called)

    def statuses_of_servers(self) -> dict[str, tuple[str, str]]:
        servers = self.api.get_servers(detail=True)
        return {s["id"]: (s["status"], s["OS-EXT-STS:task_state"]) for s in servers}

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Start without a fault, and then with each drawn case."""
        chance = random.Random(draws.SEED)
        for switch in chance.sample(list(SWITCHES), draws.part(len(SWITCHES))):
            shares, nodes = SWITCHES[switch]
            self.reporting(shares)
            self.nodes(nodes)
            self.switch(switch)
        self.check("the end", self.statuses_of_servers() == self.statuses, "the servers")
        self.figures += [f"{text}: {count}" for text, count in sorted(self.done.items())]

    def switch(self, switch: str) -> None:
        """Do the drawn cases of a host that begins to report something."""
        begin = len(self.traffic.ours)
        self.begin(None)
        self.restart("one")
        counts = {name: broken.count for name, broken in self.broken.items()}
        self.requests = self.traffic.ours[begin:]
        self.after = placement_rows()
        assert self.after.allocations != self.before.allocations
        # States of Placement that a case has left, and of which the end is known: a start or a
        # periodic task reads nothing but Placement and the database.
        self.healed: set[PlacementRows] = set()
        self.tasks: set[tuple[PlacementRows, str, str]] = set()
        made_once.copy_to_placement(self.copy)
        requests = cases_of(f"{switch}: request", counts["request"])
        queries = cases_of(f"{switch}: query", counts["query"], DATABASE_FAULTS)
        cases = draw([*requests, *queries], parts=3)
        self.figures.append(f"{switch}: {counts}, {len(cases)} cases")
        for case in cases:
            self.live(case)
            made_once.copy_to_placement(self.copy)

    def begin(self, case: Case | None) -> None:
        """Have the fault of a case from now on; ``None`` ends it."""
        for name, broken in self.broken.items():
            broken.begin(case if case and case.operation.endswith(name) else None)

    def start(self) -> BaseException | None:
        """Start the host as a new process does; return the reason if nova-compute refuses.

        The service itself, with its connections to RabbitMQ, goes on: to stop a service and to
        start another takes longer than all the rest.
        """
        report.PLACEMENTCLIENT = None
        manager = self.computes["one"].manager
        COMPUTE.start()
        manager.reportclient = report.report_client_singleton()
        manager.rt = ResourceTracker(manager.host, manager.driver, manager.reportclient)
        manager.driver.provider_tree = None
        try:
            manager.pre_start_hook(manager.service_ref)
        except (Exception, ProcessEnded) as error:
            return error
        return None

    def live(self, case: Case) -> None:
        """Start with a fault, run the periodic task, and start again without the fault."""
        self.begin(case)
        refusal = self.start()
        where = self.place_of(case)
        self.done[f"{where} {'goes on' if refusal is None else type(refusal).__name__}"] += 1
        self.check_rows(case)
        if refusal is not None:
            is_ordered = isinstance(refusal, ProcessEnded) or self.is_uncertain(case)
            self.check(case, is_ordered, f"{refusal!r}")
        task = placement_rows(), where, case.kind if case.for_ever else ""
        if refusal is None:
            self.check_novas_report(case)
        if refusal is None and task not in self.tasks:
            self.tasks.add(task)
            self.begin(case if case.for_ever else None)
            self.computes["one"].manager.update_available_resource(get_admin_context())
            self.check_rows(case)
        self.begin(None)
        state = placement_rows()
        if state not in self.healed:  # another case has left Placement in the same state
            again = self.start()
            is_healed = again is None and placement_rows() == self.after
            self.check(case, is_healed, f"the second start: {again or placement_rows()}")
            self.healed |= {state} if is_healed else set()

    def place_of(self, case: Case) -> str:
        """Return the request or the query that fails in a case."""
        return self.requests[case.number - 1] if case.operation.endswith("request") else "query"

    def is_uncertain(self, case: Case) -> bool:
        return (self.place_of(case), case.kind) == UNCERTAIN

    def check(self, case: Case | str, is_right: bool, text: str) -> None:
        if not is_right:
            where = self.place_of(case) if isinstance(case, Case) else ""
            self.breaches.append(f"{case}, {where}: {text}")

    def check_rows(self, case: Case) -> None:
        """Check that the reshape was carried out as a whole, or not at all."""
        now = placement_rows()
        is_done = now.allocations == self.after.allocations
        is_whole = is_done or now.allocations == self.before.allocations
        self.check(case, is_whole, "allocations")
        if self.is_uncertain(case):
            return
        expected = self.after if is_done else self.before
        wrong = without_disk(now.inventories) ^ without_disk(expected.inventories)
        self.check(case, not wrong, f"reshaped: {is_done}, inventories {sorted(wrong)}")

    def check_novas_report(self, case: Case) -> None:
        """Check that Nova has reported the inventory of its own, unless Nova's request failed."""
        if case.operation.endswith("request") and (
            case.for_ever or self.place_of(case).endswith(BY_NOVA)
        ):
            return
        disk = (placement_rows().inventories ^ self.after.inventories) - without_disk(
            placement_rows().inventories | self.after.inventories
        )
        self.check(case, not disk, f"Nova's inventory {sorted(disk)}")


def without_disk(inventories: Rows) -> Rows:
    return frozenset(row for row in inventories if row[1] != "DISK_GB")
