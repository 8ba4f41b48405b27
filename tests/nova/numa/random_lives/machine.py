"""The state machine of a random life: its steps, each perhaps with a failing request.

A step that is not possible does nothing, and does not count.
"""

import functools
import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from nova import context, exception, objects
from nova.compute import task_states

from cpu_tiers.nova.tier_changes import PENDING
from tests.nova.broken_answers import Case
from tests.nova.numa.agreement import topology_of
from tests.nova.numa.moves import MoveCommands
from tests.nova.numa.random_lives.checker import Checker, Resident, migration_of, without_shares
from tests.nova.numa.random_lives.cloud import HOSTS, REQUESTS, LifeCloud
from tests.nova.numa.random_lives.guests import Guest, guests
from tests.nova.numa.random_lives.record import State, Step
from tests.nova.patience import PATIENCE, wait_until
from tests.nova.script import IMAGE
from tests.placement_faults import FAULTS

STORIES = os.environ.get("CPU_TIERS_STORIES")
MOST_SERVERS = 6
STEPS = 14
"""The most steps of a life, the first boot among them."""
RESTS = ("ACTIVE", "VERIFY_RESIZE", "SHELVED_OFFLOADED")
CASES = st.one_of(
    st.none(),
    st.none(),
    st.builds(
        Case, st.just("step"), st.integers(1, 4), st.sampled_from(sorted(FAULTS)), st.booleans()
    ),
)
PORTS = st.sets(st.sampled_from(sorted(REQUESTS)), max_size=2)


@dataclass
class Story:
    """What happened in a life.

    :param count: the number of steps so far.
    :param steps: the number of steps by name.
    :param failure: what ended the life, empty if nothing did.
    :param record: the steps for the twin.
    """

    lines: list[str] = field(default_factory=list)
    count: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    record: list[Step] = field(default_factory=list)

    def tell(self, line: str) -> None:
        """Add a line, also to the file that the environment names."""
        self.lines.append(line)
        if STORIES:
            with Path(STORIES).open("a") as file:
                file.write(f"{line}\n")


def told(function: Callable[..., None]) -> Callable[..., None]:
    """Have a failure end the life.

    Hypothesis does not hear of the failure: it would live the same life several times more.
    """

    @functools.wraps(function)
    def tell(life: Any, *arguments: Any, **named: Any) -> None:
        try:
            function(life, *arguments, **named)
        except Exception:
            life.story.failure += traceback.format_exc()
            life.is_alive = False

    return tell


BODIES: dict[str, Callable[..., None]] = {}
"""The steps by name, without the draws."""


def step(*statuses: str, **strategies: Any) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator for a step, which takes the server that was drawn and the other values.

    :param statuses: the states in which a server is drawn, whose host runs; none if the step is
        about no server.
    """

    def decorate(function: Callable[..., None]) -> Any:
        def guarded(life: Any, number: int, **values: Any) -> None:
            found = life.those(*statuses)
            if not life.is_alive or life.story.count >= STEPS or (statuses and not found):
                return
            server = (found[number % len(found)],) if statuses else ()
            life.take(function.__name__, *server, **values)

        BODIES[function.__name__] = function
        # Hypothesis leaves some rules out of each life, by their names: of a single name, none.
        guarded.__name__ = "step"
        decorator: Any = rule(number=st.integers(0, MOST_SERVERS - 1), **strategies)
        return decorator(guarded)

    return decorate


class RandomLife(RuleBasedStateMachine):
    """One cloud, and the servers of a life."""

    def __init__(self, story: Story, hosts: Sequence[str] = HOSTS) -> None:
        super().__init__()
        self.hosts = hosts
        self.story = story
        self.residents: list[Resident] = []
        self.down: set[str] = set()
        self.is_alive = False
        self.cloud: Any = None
        self.now: tuple[str, int, dict[str, Any]] = "", -1, {}
        self.states: dict[str, State] = {}

    def those(self, *statuses: str) -> list[Resident]:
        """Return the servers in some states on hosts that run, or on no host."""
        return [
            resident
            for resident in self.residents
            if resident.status in statuses and resident.host not in self.down and not resident.left
        ]

    def take(self, name: str, *server: Resident, **values: Any) -> None:
        """Take a step with a server, or without one."""
        before = self.story.count
        number = self.residents.index(server[0]) if server else -1
        self.now = name, number, values
        told(BODIES[name])(self, *server, **values)
        self.story.steps[name] += self.story.count - before

    def tell(self, *words: object) -> None:
        self.story.tell(" ".join(map(str, words)))

    def act(self, resident: Resident, action: dict[str, Any], case: Case | None) -> None:
        """Have an action done, or fail; check all servers."""
        number = self.residents.index(resident)
        self.tell(f"server {number} on {resident.host}", action, case or "")
        with self.cloud.faulty(case):
            self.cloud.api.post_server_action(resident.uuid, action)
            self.rest(resident, or_pending=True)
        if resident.host and resident.host not in self.down:
            self.cloud.carry_out_changes({resident.uuid: resident.host})
            self.rest(resident)
        self.check(case)

    def rest(self, *residents: Resident, or_pending: bool = False) -> None:
        """Wait until nothing is under way for servers.

        :param or_pending: or a request has failed, and the next report of the host goes on with
            the revert of a change of the tier.
        """
        for resident in residents:
            deadline = time.monotonic() + 5 * PATIENCE  # five servers boot at once
            while not self.is_at_rest(resident.uuid, or_pending):
                assert time.monotonic() < deadline, f"{resident} does not come to rest"
                time.sleep(0.1)

    def is_at_rest(self, uuid: str, or_pending: bool) -> bool:
        admin = context.get_admin_context()
        try:  # nova-api would take five times the CPU time
            server = objects.Instance.get_by_uuid(admin, uuid, expected_attrs=["system_metadata"])
        except exception.InstanceNotFound:  # which waits for a host, or for which there is none
            return bool(self.cloud.api.get_server(uuid)["status"] == "ERROR")
        if server.task_state == task_states.RESIZE_REVERTING and or_pending:
            return bool(PENDING in server.system_metadata and self.cloud.broken.failed)
        if server.task_state or server.vm_state in ("building", "shelved"):
            return False
        under_way = objects.MigrationList.get_in_progress_by_instance(admin, uuid)
        return all(migration.status == "finished" for migration in under_way)

    def check(self, case: Case | None, *, is_boot: bool = False) -> None:
        """Check all servers, and delete those in ERROR: the twin tells whether Nova loses them.

        A server that has not booted must hold nothing.
        """
        self.story.count += 1
        if case and self.cloud.broken.failed:
            self.tell("    failed:", *self.cloud.broken.failed)
        self.look()
        self.record(case)
        lost = [resident for resident in self.residents if resident.status == "ERROR"]
        if is_boot:
            self.checker.check(self.residents, is_faulty=case is not None)
        for resident in lost:
            self.tell("    lost:", self.states[resident.uuid].fault)
            self.cloud.delete(resident.uuid)
            self.residents.remove(resident)
        if not is_boot:
            self.checker.check(self.residents, is_faulty=case is not None)

    def look(self) -> None:
        """See how all servers are."""
        shown = {server["id"]: server for server in self.cloud.api.get_servers()}
        for resident in self.residents:
            resident.look(shown[resident.uuid], self.cloud.guests, self.down)
        self.tell("   ", *(f"{one.status} {one.host}" for one in self.residents))

    def record(self, case: Case | None) -> None:
        """Record the step for the twin."""
        before = [self.states[one.uuid] for one in self.residents if one.uuid in self.states]
        self.states = {one.uuid: self.state_of(one) for one in self.residents}
        name, number, values = self.now
        step = Step(
            name=name,
            number=number,
            values=values,
            before=before,
            after=list(self.states.values()),
            struck=self.cloud.struck if case else frozenset(),
            case=case,
            has_failed=bool(case and self.cloud.broken.failed),
            aware_only=frozenset(host for host, (nodes, _) in self.cloud.options.items() if nodes),
        )
        self.story.record.append(step)

    def state_of(self, resident: Resident) -> State:
        """Return how a server is."""
        topology = topology_of(resident.uuid) if resident.host else None
        # The list of Nova 31 and 32 lacks the faults of servers that are in another cell.
        is_lost = resident.status == "ERROR"
        fault = self.cloud.api.get_server(resident.uuid)["fault"] if is_lost else {}
        ports, names = self.cloud.ports_of(resident.uuid), self.cloud.tree.names()
        providers = [self.cloud.neutron.profile(port).get("allocation") for port in ports]
        return State(
            status=resident.status,
            host=resident.host,
            guest=resident.guest,
            cells=tuple(cell.id for cell in topology.cells) if topology else (),
            ports=tuple(ports),
            interfaces=frozenset(names[uuid] for uuid in providers if uuid in names),
            fault=fault.get("message", ""),
        )

    @initialize(number=st.integers(0, 99), guest=guests(), ports=PORTS, is_off=st.booleans())
    @told
    def begin(self, number: int, guest: Guest, ports: Collection[str], is_off: bool) -> None:
        """Start the hosts, with the options on or off, and boot a server.

        :param number: 0 for no life: Hypothesis always begins with the simplest example.
        """
        if not number:
            return
        self.start(is_off)
        self.take("boot_one", guest=guest, ports=ports, volume=False, case=None)

    def start(self, is_off: bool) -> None:
        """Start the hosts."""
        random.seed()  # Hypothesis has seeded it, and Nova's fixtures draw their names from it
        self.cloud = LifeCloud("runTest")
        self.cloud.setUp()
        self.is_alive = True
        self.cloud.restart_scheduler(
            query_placement_for_numa=True, query_placement_for_vcpu_shares=not is_off
        )
        self.checker = Checker(self.cloud, has_shares=not is_off)
        self.tell("options are", "off" if is_off else "on")
        for host in self.hosts:
            nodes = None if is_off or host == "old" else True
            self.cloud.begin(host, nodes=nodes, shares=not is_off)

    @step(guest=guests(), ports=PORTS, volume=st.booleans(), case=CASES)
    def boot_one(
        self, guest: Guest, ports: Collection[str], volume: bool, case: Case | None
    ) -> None:
        """Boot a server with ports, from an image or from a volume."""
        if len(self.residents) < MOST_SERVERS:
            volume = volume and not any(resident.has_volume for resident in self.residents)
            self.boot(guest, ports, volume=volume, count=1, case=case)

    @step(guest=guests(), case=CASES)
    def boot_five(self, guest: Guest, case: Case | None) -> None:
        """Boot five servers in one request."""
        if len(self.residents) < MOST_SERVERS - 4:
            self.boot(guest, (), volume=False, count=5, case=case)

    def boot(
        self, guest: Guest, ports: Collection[str], *, volume: bool, count: int, case: Case | None
    ) -> None:
        taken = {port for one in self.residents for port in self.cloud.ports_of(one.uuid)}
        free = sorted(set(ports) - taken)
        self.tell("boot", count, guest, free, "volume" if volume else "", case or "")
        body = self.cloud.boot_request(guest, free, volume=volume)
        before = {server["id"] for server in self.cloud.api.get_servers(detail=False)}
        with self.cloud.faulty(case):
            request = {**body, "min_count": count, "max_count": count}
            self.cloud.api.post_server({"server": request})
            servers = self.cloud.api.get_servers(detail=False)
            made = sorted({server["id"] for server in servers} - before)
            new = [Resident(uuid, guest, volume) for uuid in made]
            self.residents += new
            self.rest(*new)
        self.check(case, is_boot=True)

    @step("ACTIVE", guest=guests(), case=CASES)
    def resize(self, resident: Resident, guest: Guest, case: Case | None) -> None:
        """Resize a server; its user decides later."""
        self.tell(guest)
        self.act(resident, {"resize": {"flavorRef": self.cloud.flavor_of(guest)}}, case)

    @step("ACTIVE", multiplier=st.sampled_from(["10", "2.5", "25"]), case=CASES)
    def change_tier(self, resident: Resident, multiplier: str, case: Case | None) -> None:
        """Resize a server to another tier, while it runs if its host has room."""
        if resident.guest.multiplier == multiplier:
            return
        self.tell("tier", multiplier)
        guest = replace(resident.guest, multiplier=multiplier)
        self.act(resident, {"resize": {"flavorRef": self.cloud.flavor_of(guest)}}, case)

    @step("ACTIVE", case=CASES)
    def migrate(self, resident: Resident, case: Case | None) -> None:
        """Migrate a server; its user decides later."""
        self.act(resident, {"migrate": None}, case)

    @step("VERIFY_RESIZE", case=CASES, confirms=st.booleans())
    def end_resize(self, resident: Resident, case: Case | None, confirms: bool) -> None:
        """Confirm or revert.

        All computes of the process have one ``[DEFAULT] host``. Nova's driver compares it with the
        host of the server, and undefines the guest on the former host.

        With Nova alone as well, a server loses its virtual GPU if a resize on its own host is
        reverted (tests/nova/compute/test_mediated_devices.py).
        """
        source = migration_of(resident).source_compute
        had_gpu = any("VGPU" in amounts for amounts in resident.source.values())
        if not confirms and had_gpu and source == resident.host:
            return
        self.cloud.flags(host=source)
        self.act(resident, {"confirmResize" if confirms else "revertResize": None}, case)
        if not confirms and resident.status == "ACTIVE":
            self.cloud.correct_request(resident.uuid)

    @step("ACTIVE", case=CASES)
    def migrate_live(self, resident: Resident, case: Case | None) -> None:
        """Migrate a server while it runs."""
        action = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
        self.act(resident, action, case)

    @step("ACTIVE", case=CASES)
    def evacuate(self, resident: Resident, case: Case | None) -> None:
        """Have a host die, and evacuate a server.

        Nova refuses a server with a virtual GPU, and the server loses its devices and ports, with
        every option of cpu-tiers off as well (docs/contributor/upstream/evacuated-gpu.rst).
        """
        if resident.guest.gpus:
            return
        busy = self.those("VERIFY_RESIZE")
        hosts = {one.host for one in busy} | {migration_of(one).source_compute for one in busy}
        if self.down or resident.host in hosts:
            return
        self.cloud.go_down(resident.host)
        self.down.add(resident.host)
        self.act(resident, {"evacuate": {}}, case)

    @step(case=CASES)
    def come_back(self, case: Case | None) -> None:
        """Start the host that is down."""
        if not self.down:
            return
        (host,) = self.down
        self.tell(host, "comes back", case or "")
        with self.cloud.faulty(case):
            self.cloud.restart(host)
            self.cloud.come_back(host)
        self.down.clear()
        for resident in self.residents:
            resident.left = {}
        self.check(case)

    @step("ACTIVE", case=CASES)
    def shelve(self, resident: Resident, case: Case | None) -> None:
        """Shelve and offload a server, after Nova's periodic task, which the cloud does not run.

        Before the task has run on the host to which a server has moved, a shelve does not free the
        server's PCI devices, with Nova alone as well, and the ports of an unshelved server may be
        bound to the former devices.
        """
        manager = self.cloud.computes[resident.host].manager
        manager.update_available_resource(context.get_admin_context())
        self.act(resident, {"shelve": {}}, case)

    @step("SHELVED_OFFLOADED", case=CASES)
    def unshelve(self, resident: Resident, case: Case | None) -> None:
        """Unshelve a server."""
        self.act(resident, {"unshelve": None}, case)

    @step("ACTIVE", case=CASES)
    def rebuild(self, resident: Resident, case: Case | None) -> None:
        """Rebuild a server from another image, unless its disk is a volume.

        For a volume, Nova waits for an event of Cinder, which the fake Cinder does not send.
        """
        if resident.has_volume:
            return
        self.act(resident, {"rebuild": {"imageRef": IMAGE}}, case)

    @step("ACTIVE", port=st.sampled_from(sorted(REQUESTS)), case=CASES)
    def attach_or_detach(self, resident: Resident, port: str, case: Case | None) -> None:
        """Attach a port to a server, or detach the port from its server."""
        owner = self.cloud.neutron._ports[port].get("device_id")
        owners = [one for one in self.those("ACTIVE") if one.uuid == owner]
        if owner and not owners:
            return
        server = owners[0] if owner else resident
        self.tell("detach" if owner else "attach", port, self.residents.index(server), case or "")
        with self.cloud.faulty(case):
            if owner:
                self.cloud.api.detach_interface(server.uuid, port)
                wait_until(lambda: port not in self.cloud.ports_of(server.uuid))
                self.cloud.unplug(server.uuid, server.host, port)
            else:
                body = {"interfaceAttachment": {"port_id": port}}
                self.cloud.api.attach_interface(server.uuid, body)
        self.check(case)

    @step(*RESTS, case=CASES)
    def delete(self, resident: Resident, case: Case | None) -> None:
        """Delete a server."""
        self.tell("delete", self.residents.index(resident), case or "")
        with self.cloud.faulty(case):
            self.cloud.delete(resident.uuid)
        self.residents.remove(resident)
        self.check(case)

    @step(host=st.sampled_from(HOSTS), case=CASES)
    def restart(self, host: str, case: Case | None) -> None:
        """Restart a compute."""
        if host in self.down:
            return
        self.tell("restart", host, case or "")
        with self.cloud.faulty(case):
            self.cloud.restart(host)
        self.check(case)

    @step()
    def switch_shares_on(self) -> None:
        """Have all hosts report shares, and then nova-scheduler request shares."""
        if self.checker.has_shares or self.down:
            return
        self.tell("shares on")
        for host in self.hosts:
            self.cloud.options[host] = (self.cloud.options[host][0], True)
            self.cloud.restart(host)
        self.cloud.restart_scheduler(query_placement_for_vcpu_shares=True)
        self.checker.has_shares = True
        self.checker.take_over(self.those("VERIFY_RESIZE"))
        self.check(None)

    @step(host=st.sampled_from(HOSTS))
    def switch_nodes_on(self, host: str) -> None:
        """Have a host report its NUMA nodes, if it has no servers without NUMA nodes."""
        nodes, shares = self.cloud.options[host]
        plain = [one for one in self.residents if not one.guest.is_aware]
        if nodes or plain or self.down or self.those("VERIFY_RESIZE"):
            return
        self.tell("nodes on", host)
        self.cloud.options[host] = (True, shares)
        self.cloud.restart(host)
        self.check(None)

    @step("ACTIVE")
    def heal(self, resident: Resident) -> None:
        """Have a server lose its shares, and heal it."""
        if not self.checker.has_shares or self.down:
            return
        self.tell("heal", self.residents.index(resident))
        rows = without_shares(resident.held)
        if rows != resident.held:
            self.cloud.write_rows(resident.uuid, rows)
        MoveCommands(self.cloud).run("allocation", "heal", "--apply", "--skip-ports")
        self.check(None)

    def teardown(self) -> None:
        """Delete all servers; nothing is left."""
        if self.is_alive:
            self.end()
        if self.cloud is not None:
            self.stop()

    @told
    def end(self) -> None:
        for host in self.down:
            self.cloud.restart(host)
            self.cloud.come_back(host)
        for resident in self.residents:
            self.cloud.delete(resident.uuid)
        assert not self.cloud.rows()
        for host, compute in self.cloud.computes.items():
            compute.manager.update_available_resource(context.get_admin_context())
            self.checker.check_is_empty(host)

    @told
    def stop(self) -> None:
        self.cloud.end()
