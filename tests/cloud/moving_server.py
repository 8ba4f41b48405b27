"""A server, its state in Nova's database, and the operations of a test on the server."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.cloud.operations import COLD_MIGRATION, EVACUATION, NEW, Operation
from tests.cloud.rest import COMPUTE, Cloud
from tests.cloud.two_hosts import HOSTS

PATIENCE = 60
"""Seconds until an operation must have ended, one way or another."""

RESTING = (
    "confirmed",
    "reverted",
    "finished",
    "completed",
    "done",
    "error",
    "failed",
    "cancelled",
)
"""The statuses of a migration in which nothing goes on."""


class State(NamedTuple):
    """The state of a server in Nova's database."""

    vm_state: str
    host: str
    task: str = "NULL"
    migration: str = "NULL"

    @property
    def is_resting(self) -> bool:
        """Tell whether nothing goes on."""
        at_rest = self.migration == "NULL" or self.migration in RESTING
        return self.task == "NULL" and at_rest and self.vm_state not in ("", "building")


GONE = State("", "")
"""No cell has the server."""


class MovingServer:
    """A server of a flavor, and its operations; a new server, where the old one is of no use."""

    def __init__(self, cloud: Cloud, name: str, flavor: str, image: str) -> None:
        self.cloud, self.name, self.flavor, self.image = cloud, name, flavor, image
        self.uuid = ""
        self.hosts: Sequence[str] = HOSTS

    def start(self, operation: Operation) -> int:
        """Send the request of an operation; return the status of the answer."""
        if operation.name == "boot":
            return self.boot("compute1")
        if operation.name == "return":
            self.bring_host_back()
            return 202
        path = f"/servers/{self.uuid}/action"
        return self.cloud.request("POST", COMPUTE, path, operation.action).status

    def boot(self, host: str) -> int:
        """Begin a server on a host; return the status of the answer."""
        body = {
            "name": self.name,
            "imageRef": self.image,
            "flavorRef": self.flavor,
            "networks": "none",
            "host": host,
        }
        answer = self.cloud.request("POST", COMPUTE, "/servers", {"server": body})
        self.uuid = answer.body["server"]["id"] if answer.status == 202 else ""
        return answer.status

    def delete(self) -> None:
        """Delete the server, whatever its state is."""
        if self.uuid:
            path = f"/servers/{self.uuid}"
            self.cloud.request(
                "POST", COMPUTE, f"{path}/action", {"os-resetState": {"state": "error"}}
            )
            self.cloud.request("DELETE", COMPUTE, path)
            wait_until(lambda: self.cloud.request("GET", COMPUTE, path).status == 404)
        self.uuid = ""

    def state(self) -> State:
        """Return the state of the server, from the database of either cell."""
        migration = (
            "(SELECT status FROM migrations m WHERE m.instance_uuid = i.uuid"
            " ORDER BY id DESC LIMIT 1)"
        )
        query = (
            f"SELECT vm_state, host, task_state, {migration} FROM instances i"  # noqa: S608
            f" WHERE uuid = '{self.uuid}' AND NOT deleted"
        )
        for database in ("nova", "nova_cell0"):
            for row in self.cloud.rows(database, query):
                return State(*row)
        return GONE

    def settle(self) -> State:
        """Return the state in which the server stays."""
        wait_until(lambda: not self.uuid or self.state().is_resting)
        return self.state()

    def bring(self, vm_state: str, host: str) -> None:
        """Have a server in a state on a host, as an operation needs it, without any fault.

        :raises AssertionError: an operation failed without a fault.
        """
        if vm_state == "evacuated" and self.hosts != HOSTS:
            return  # by the operation before
        if self.hosts != HOSTS:
            self.bring_host_back()
            self.wait_for_services()
        wanted = ("active" if vm_state in ("lost", "evacuated") else vm_state, host)
        if vm_state == NEW:
            self.delete()
        elif vm_state == "evacuated":
            self.bring("lost", "compute2")
            self.start(EVACUATION)
            self.must_be("active", "compute1")
        elif self.place() != wanted:
            self._reach(*wanted)
        if vm_state == "lost":
            self.lose_host()

    def _reach(self, vm_state: str, host: str) -> None:
        """Have an active server on a host, or a resized server, which is on the second host."""
        first = "compute1" if vm_state == "resized" else host
        if self.place() != ("active", first):
            self.delete()
            assert self.boot(first) == 202
            self.must_be("active", first)
        if vm_state == "resized":
            self.start(COLD_MIGRATION)
            self.must_be("resized", host)

    def place(self) -> tuple[str, str]:
        """Return the state and the host of the server."""
        state = self.state() if self.uuid else GONE
        return state.vm_state, state.host

    def renew(self) -> None:
        """Have a new server next time, and nothing left of this server."""
        self.delete()
        if self.hosts != HOSTS:
            self.bring_host_back()
            self.wait_for_services()

    def wait_for_services(self) -> None:
        """Wait until Nova uses all running hosts.

        If the start of nova-compute fails, its process stays and does nothing, as with Nova alone.
        Then it is started again.
        """
        if wait_until(lambda: not self._unused_hosts()):
            return
        for host in self._unused_hosts():
            self.cloud.on(host, "supervisorctl restart nova-compute")
        assert wait_until(lambda: not self._unused_hosts()), self._unused_hosts()

    def _unused_hosts(self) -> set[str]:
        """Return the running hosts that Nova does not use."""
        # Nova refuses this until the host has seen which servers were evacuated.
        if self.hosts == HOSTS and self._service()["forced_down"]:
            self._force_down(False)
        services = self.cloud.get(COMPUTE, "/os-services?binary=nova-compute")["services"]
        used = {s["host"] for s in services if (s["state"], s["status"]) == ("up", "enabled")}
        return set(self.hosts) - used

    def must_be(self, vm_state: str, host: str) -> None:
        """Wait for a state that only a fault can prevent."""
        state = self.settle()
        assert (state.vm_state, state.host, state.task) == (vm_state, host, "NULL"), state

    def lose_host(self) -> None:
        """Have the second host without power, as far as Nova and its guests know."""
        self.cloud.on("compute2", "supervisorctl stop nova-compute")
        self.cloud.on("compute2", "virsh list --name | xargs -rn 1 virsh destroy")
        assert self._force_down(True)
        self.hosts = HOSTS[:1]

    def bring_host_back(self) -> None:
        """Start the second host again; :meth:`wait_for_services` has Nova use it."""
        self.cloud.on("compute2", "supervisorctl start nova-compute")
        self.hosts = HOSTS

    def _service(self) -> Any:
        path = "/os-services?binary=nova-compute&host=compute2"
        return self.cloud.get(COMPUTE, path)["services"][0]

    def _force_down(self, forced_down: bool) -> bool:
        """Tell Nova whether the second host is dead; return whether Nova takes it."""
        path = f"/os-services/{self._service()['id']}"
        answer = self.cloud.request("PUT", COMPUTE, path, {"forced_down": forced_down})
        return answer.status == 200


def wait_until(is_true: Any, seconds: float = PATIENCE) -> bool:
    """Wait until a condition holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not (done := is_true()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return bool(done)
