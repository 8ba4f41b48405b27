"""Lives of servers in which each request or query of cpu-tiers fails in each way."""

import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from nova.context import get_admin_context
from nova.scheduler.client import report

from tests import draws
from tests.nova import script
from tests.nova.broken_answers import DATABASE_FAULTS, BrokenAnswers, Case, cases_of
from tests.placement_faults import FAULTS

WRITTEN = ("silence", "half JSON")
"""The faults in which Placement does what it is asked to do, and the answer is lost."""

LIVES_OF_A_HOST = 4
"""After so many lives a host starts anew. Nova goes on counting the CPUs of a server that was
resized on its own host and deleted, until the next periodic update, which does not run here."""

Amounts = dict[str, Counter[str]]
"""Amounts of resource classes by host."""


class FaultyLife(script.Script):
    """Lives of servers; in each operation of a life is at most one fault."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    hosts: tuple[str, ...] = ("one", "two")
    wanted: Container[str] | None = None
    """The operations of the lives; all operations, if it is ``None``."""
    breaks_database: bool = False
    """Whether queries to Nova's database fail, and not requests to Placement."""
    figures: list[str]
    breaches: list[str]

    def setUp(self) -> None:
        super().setUp()
        self.flags(allow_resize_to_same_host=len(self.hosts) == 1)
        self.broken = BrokenAnswers(DATABASE_FAULTS if self.breaks_database else FAULTS)
        if self.breaks_database:
            self.traffic.query = self.broken
        else:
            self.traffic.answer = self.broken
        self.ours: Counter[str] = Counter()
        self.cases: dict[str, Case] = {}
        self.done: Counter[str] = Counter()
        for host in self.hosts:
            self.start_host(host)

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Live once without a fault, and then until each drawn case was in a life."""
        self.live({})
        kinds, parts = self.broken.faults, 3 if self.breaks_database else 2
        every = (case for name in self.ours for case in cases_of(name, self.ours[name], kinds))
        drawn = draw(every, parts=parts)
        by_operation = [[c for c in drawn if c.operation == name] for name in self.ours]
        for number, cases in enumerate(zip_longest(*by_operation), start=1):
            if number % LIVES_OF_A_HOST == 0:
                for host in self.hosts:
                    self.restart(host)
            self.live({case.operation: case for case in cases if case})
        figures = {name: count for name, count in sorted(self.done.items()) if count}
        self.figures.append(f"{len(drawn)} cases, requests {dict(self.ours)}: {figures}")

    def live(self, cases: dict[str, Case]) -> None:
        """Live one life, with at most one fault in each operation."""
        self.cases, is_dry = cases, not cases
        report.PLACEMENTCLIENT = None  # so that nova-scheduler does not know the names any more
        for name, operation in self.operations():
            if self.wanted is not None and name not in self.wanted:
                continue
            if is_dry or name in cases or name in self.needed():
                try:
                    operation()
                except AssertionError as error:
                    self.check(name, False, str(error))
                    self.begin_anew()
                    return

    def begin_anew(self) -> None:
        """Delete a server that a fault has left in a state from which its life cannot go on."""
        self.broken.begin(None)
        self.api.post_server_action(self.uuid, {"os-resetState": {"state": "active"}})
        self._delete_server(self.server)
        for host in self.hosts:
            self.restart(host)  # an evacuation that failed has left it down
            self.come_back(host)

    def needed(self) -> set[str]:
        """Return the operations that have to be done in each life."""
        resize = {"resize", "confirm"}
        return {"boot", "delete"} | (resize if resize & set(self.cases) else set())

    def operations(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the operations in the order of a life."""
        yield "boot", self.boot_once_more
        yield "service restart", self.restart_host
        yield "unshelve", self.unshelve
        yield "resize", lambda: self.change({"resize": {"flavorRef": self.large}}, "resize")
        yield "confirm", lambda: self.end_change("confirm")
        yield "revert", self.revert
        yield "cold migration", self.migrate
        yield "live migration", self.migrate_live
        yield "evacuation", self.evacuate
        yield "delete", lambda: self._delete_server(self.server)

    @contextmanager
    def faulty(self, name: str) -> Iterator[None]:
        """Have the fault of an operation in the context, and count the requests without one."""
        case = self.cases.get(name)
        self.broken.begin(case)
        yield
        self.traffic.settle()
        if not self.cases:
            self.ours[name] = self.broken.count
        self.broken.begin(None)

    def act(self, name: str, action: dict[str, Any], before: str, *after: str) -> bool:
        """Have an action with the fault of an operation; return whether the action was done.

        :param before: the state of the server if the operation is refused.
        :param after: the states if the operation is done.
        """
        with self.faulty(name):
            self.api.post_server_action(self.uuid, action)
            status = self.rests(before, *after)
        self.check(name, status in (before, *after), f"the server is in {status}")
        self.check_allocations(name)
        is_done = status in after
        self.done[f"{name} {'done' if is_done else 'refused'}"] += name in self.cases
        return is_done

    def check(self, name: str, is_right: bool, text: str) -> None:
        if not is_right:
            self.breaches.append(f"{self.cases.get(name, name)}: {text}")

    def held_by_host(self, consumer: str) -> Amounts:
        """Return the allocations of a consumer, by host and not by NUMA node."""
        amounts: Amounts = {}
        for provider, resources in self.held(consumer).items():
            amounts.setdefault(provider.partition("_")[0], Counter()).update(resources)
        return amounts

    def check_allocations(self, name: str) -> None:
        """Check that the server has on its host what its flavor needs, and no more.

        The exception is the known breach of decision D63, which is counted.
        """
        server = self.api.get_server(self.uuid)
        host, held = server["OS-EXT-SRV-ATTR:host"], self.held_by_host(self.uuid)
        vcpus = server["flavor"]["vcpus"]
        amounts = held.get(host or "", Counter())
        if self.is_known_breach(name) and amounts["VCPU"] > vcpus:
            self.done[f"{name} refused, but written"] += 1
            return
        self.check(name, host is None or amounts["VCPU"] == vcpus, f"{host} of {held}, {vcpus}")

    def is_known_breach(self, name: str) -> bool:
        """Tell whether Placement has written both consumers and answers nothing from then on."""
        case = self.cases.get(name)
        is_uncertain = case is not None and case.for_ever and case.kind in WRITTEN
        return is_uncertain and name == "resize" and len(self.hosts) == 1

    def boot_once_more(self) -> None:
        body = self._build_server(flavor_id=self.small, networks="none")
        with self.faulty("boot"):
            self.server = self.api.post_server({"server": body})
            status = self.rests("ACTIVE", "ERROR")
        self.done[f"boot {status}"] += "boot" in self.cases
        if status == "ACTIVE":
            self.check_allocations("boot")
            return
        self.server = self.api.get_server(self.uuid)
        fault = self.server.get("fault", {}).get("message", "")
        self.check("boot", status == "ERROR" and "No valid host" in fault, f"{status} {fault}")
        self.check("boot", not self.held(self.uuid), f"it holds {self.held(self.uuid)}")
        self._delete_server(self.server)
        self.server = self.boot(self.small)

    def restart_host(self) -> None:
        host = self.host_of(self.server)
        before, held = self.tree.inventories(host), self.held(self.uuid)
        with self.faulty("service restart"):
            self.restart(host)
        self.done["service restart done"] += "service restart" in self.cases
        self.check("service restart", self.tree.inventories(host) == before, "the inventories")
        self.check("service restart", self.held(self.uuid) == held, "the allocations")

    def unshelve(self) -> None:
        self.acts({"shelve": {}}, "SHELVED_OFFLOADED")
        action = {"unshelve": None}
        if not self.act("unshelve", action, "SHELVED_OFFLOADED", "ACTIVE"):
            self.acts(action, "ACTIVE")

    def change(self, action: dict[str, Any], name: str) -> None:
        """Resize or migrate; if it is refused, do it again without a fault."""
        if not self.act(name, action, "ACTIVE", "VERIFY_RESIZE"):
            self.acts(action, "VERIFY_RESIZE")

    def end_change(self, name: str) -> None:
        """Confirm or revert, and remove what the fault has left on the other host."""
        self.be_the_source()
        self.act(name, {f"{name}Resize": None}, "ACTIVE", "ACTIVE")
        host = self.host_of(self.server)
        others = {other for other in self.held_by_host(self.uuid) if other != host}
        self.done[f"{name} left allocations"] += bool(others)
        for other in others:
            self.remove_allocations(other)

    def be_the_source(self) -> None:
        """Have the guest of a confirmed move undefined on its source.

        Nova's driver undefines a guest on a host that is not its own, and the hosts here share the
        option: it names the host that started last. An evacuation to the
        source would find the guest there.
        """
        if len(self.hosts) > 1:
            self.flags(host=self.other(self.host_of(self.server)))

    def remove_allocations(self, host: str) -> None:
        root = self.compute_rp_uuids[host]
        client = report.SchedulerReportClient()
        client.remove_provider_tree_from_instance_allocation(get_admin_context(), self.uuid, root)

    def revert(self) -> None:
        self.resize(self.middle)
        self.end_change("revert")

    def migrate(self) -> None:
        self.change({"migrate": None}, "cold migration")
        self.be_the_source()
        self.acts({"confirmResize": None}, "ACTIVE")

    def migrate_live(self) -> None:
        source = self.host_of(self.server)
        self.src, self.dest = self.computes[source], self.computes[self.other(source)]
        action = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        self.act("live migration", action, "ACTIVE", "ACTIVE")
        host = self.host_of(self.server)
        for other in self.held_by_host(self.uuid):
            if other != host:
                self.remove_allocations(other)

    def evacuate(self) -> None:
        host = self.host_of(self.server)
        self.go_down(host)
        if not self.act("evacuation", {"evacuate": {}}, "ACTIVE", "SHUTOFF"):
            if self.host_of(self.server) == host:
                self.acts({"evacuate": {}}, "SHUTOFF")
            # Nova shows the evacuated server as ACTIVE without a task before it stops the guest.
            self.rests("SHUTOFF")
        self.restart(host)
        self.come_back(host)


def draw(cases: Iterable[Case], *, parts: int) -> list[Case]:
    """Return the cases of this run, since a case takes two seconds of CPU time.

    :param parts: 1 for a part of all cases, 2 for a part of a part, and so on. With the 7 days
        of ``tests/draws.py`` and two parts, 49 runs draw as many cases as there are.
    """
    every = sorted(cases)
    count = len(every)
    for _ in range(parts):
        count = draws.part(count)
    return random.Random(draws.SEED).sample(every, count)
