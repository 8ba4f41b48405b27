"""Faults in operations of servers and in commands, and the breaches afterwards."""

import random
import time
from collections.abc import Mapping

from tests import draws
from tests.cloud.faults import Fault
from tests.cloud.holdings import Checker
from tests.cloud.moving_server import MovingServer
from tests.cloud.operations import Operation
from tests.cloud.rest import COMPUTE, PLACEMENT, Cloud
from tests.cloud.tiers import TIERS
from tests.cloud.writing_command import HEAL, SYNC, WritingCommand

OURS = ("partial:", "weight:", "pinned:", "audit:", "raised:")
"""Kinds of breaches that no fault may cause; all others stock Nova has, too."""


class Lives:
    """Operations of servers, and commands, with faults in them.

    :param has_tiers: the hosts have cpu-tiers and report shares.
    """

    def __init__(self, cloud: Cloud, *, has_tiers: bool) -> None:
        self.cloud = cloud
        self.checker = Checker(cloud, has_tiers=has_tiers)
        flavors = cloud.get(COMPUTE, "/flavors")["flavors"]
        image = cloud.shell.output_of("openstack image show halted -f value -c id")
        self.flavors = {flavor["name"]: flavor["id"] for flavor in flavors}
        self.image = image
        self.servers = {name: self.server(name) for name in TIERS}
        self.durations = {HEAL: 6.0, SYNC: 6.0}

    def server(self, name: str) -> MovingServer:
        """Return a server of a tier, which does not exist yet."""
        return MovingServer(self.cloud, name, self.flavors[name], self.image)

    def bring(self, server: MovingServer, vm_state: str, host: str) -> None:
        """Have a server in a state on a host, without any fault, in one of three tries.

        After an earlier fault, services answer before all their connections work again. And the
        allocations that this fault has left behind may take the room of the server.

        :raises AssertionError: an operation failed without a fault.
        """
        for _ in range(2):
            try:
                return server.bring(vm_state, host)
            except AssertionError as error:
                report(f"{server.name} is not {vm_state} on {host}: {error}")
                server.renew()
                self.checker.remove_leaks()
        return server.bring(vm_state, host)

    def live(self, fault: Fault, operation: Operation, name: str) -> list[str]:
        """Have a fault in an operation; print its end, and return what cpu-tiers has caused."""
        chance = random.Random(f"{draws.SEED} {fault} {operation.name} {name}")
        delay, outage = chance.uniform(-1, operation.seconds), chance.uniform(1, 10)
        server = self.servers[name]
        self.bring(server, *operation.begin)
        try:
            if delay < 0:
                fault.begin(self.cloud)
                hit, status = "before", server.start(operation)
            else:
                begin = time.monotonic()
                status = server.start(operation)
                time.sleep(max(0, begin + delay - time.monotonic()))
                hit = "/".join(server.state())
                fault.begin(self.cloud)
            time.sleep(outage)
        finally:
            fault.end(self.cloud)
        end = server.settle()
        server.wait_for_services()
        breaches = self.checker.breaches()
        is_done = (end.vm_state, end.host, end.task) == (*operation.end, "NULL")
        outcome = "done" if is_done else "/".join(end)
        report(
            f"{operation.name}, {name}, {fault}, {delay:.1f} s ({hit}), {outage:.1f} s, {status}:"
            f" {outcome}",
            *breaches,
        )
        if breaches or not is_done:
            server.renew()
            self.checker.remove_leaks()
        return [breach for breach in breaches if breach.startswith(OURS)]

    def allocate(self, server: MovingServer, amounts: Mapping[str, int]) -> None:
        """Have a server hold other amounts of its host, or nothing."""
        path = f"/allocations/{server.uuid}"
        body = self.cloud.get(PLACEMENT, path)
        providers = body["allocations"] if amounts else {}
        body["allocations"] = {each: {"resources": amounts} for each in providers}
        if "consumer_generation" in body:  # else the server has nothing
            assert self.cloud.request("PUT", PLACEMENT, path, body).status == 204

    def run(self, command: WritingCommand) -> tuple[int, str]:
        """Run a command without a fault, and see how long it takes on this machine today."""
        begin = time.monotonic()
        end = command.run(self.cloud)
        self.durations[command] = time.monotonic() - begin
        return end

    def run_with(self, fault: Fault, command: WritingCommand) -> None:
        """Have a fault while a command runs; print its end."""
        chance = random.Random(f"{draws.SEED} {fault} {command}")
        delay, outage = chance.uniform(-1, self.durations[command]), chance.uniform(1, 10)
        if delay < 0:
            fault.begin(self.cloud)
            command.start(self.cloud)
        else:
            command.start(self.cloud)
            time.sleep(delay)
            fault.begin(self.cloud)
        time.sleep(outage)
        fault.end(self.cloud)
        status, line = command.end(self.cloud)
        end = line if status else "done"
        report(f"{command}, {fault}, {delay:.1f} s, {outage:.1f} s: {end}")


def report(*lines: str) -> None:
    """Print the outcome of a case."""
    print(*lines, sep="\n   ", flush=True)  # noqa: T201  # the record of a run
