"""The drawn operations of a day: servers boot, move, stop, start and are deleted, three at a time.

The seed and the number of an operation draw it from the servers that are at rest then.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests import draws
from tests.cloud.day_hosts import DEDICATED, DRAWN, FLAVORS, NEW_PORT, PORTS
from tests.cloud.day_server import DayServer, Going
from tests.cloud.lives import report
from tests.cloud.moving_server import GONE, State
from tests.cloud.outages import Outages
from tests.cloud.rest import COMPUTE, Cloud
from tests.cloud.two_hosts import HOSTS

MOST_SERVERS, MOST_AT_ONCE = 8, 3
PATIENCE, REMOVAL_PATIENCE, AGAIN, HANGS = 150, 300, 20, 60
"""Seconds until an operation has ended, and until a server is gone, whose deletion is requested
again from time to time. A nova-compute that has not deleted it within a minute hangs."""
REST = 10
"""Seconds until a server that rests in another state stays so: Nova writes the end of a migration
before that of the server."""

NOVAS_RACE = "CPU set to unpin"
"""Without cpu-tiers, too, Nova cannot confirm the resize of a pinned server on its host if the
periodic task has looked at the resources of the host before the new guest ran."""

_ACTIONS: Mapping[str, Mapping[str, Any]] = {
    "confirm": {"confirmResize": None},
    "revert": {"revertResize": None},
    "stop": {"os-stop": None},
    "start": {"os-start": None},
    "cold migration": {"migrate": None},
    "live migration": {"os-migrateLive": {"host": None, "block_migration": "auto"}},
}
_CHOICES = {
    "active": {"resize": 4, "live migration": 4, "cold migration": 2, "stop": 2, "delete": 2},
    "resized": {"confirm": 2, "revert": 1},
    "stopped": {"start": 4, "resize": 1, "delete": 1},
}
"""What may happen to a server in a state, and how often."""
_ENDS = {
    "boot": {"active"},
    "resize": {"resized"},
    "cold migration": {"resized"},
    "confirm": {"active", "stopped"},
    "revert": {"active", "stopped"},
    "stop": {"stopped"},
    "start": {"active"},
    "live migration": {"active"},
}


class Day:
    """The servers of a day, and what became of their operations.

    :ivar failures: what went wrong while all services answered, or stays.
    :ivar done: how many operations of each name ended as they should; ``lost`` how many did not,
        because a service was away.
    :ivar hung: the hosts whose nova-compute hung.
    :ivar lost_servers: the servers of these operations, which are deleted.
    """

    def __init__(self, cloud: Cloud, outages: Outages, ports: Mapping[str, str]) -> None:
        self.cloud, self.outages, self.ports = cloud, outages, dict(ports)
        self.servers: list[DayServer] = []
        self.number = 0
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.lost_servers: set[str] = set()
        self.hung: list[str] = []
        self._restart_at: dict[str, float] = {}
        flavors = cloud.get(COMPUTE, "/flavors")["flavors"]
        self.flavors = {flavor["name"]: flavor["id"] for flavor in flavors}
        images = cloud.shell.output_of("openstack image list -f value -c Name -c ID")
        self.images = {name: uuid for uuid, name in map(str.split, images.splitlines())}

    def step(self) -> None:
        """Look at all servers; begin an operation if there is room."""
        self._look()
        going = sum(server.going is not None for server in self.servers)
        if going < MOST_AT_ONCE:
            self._draw()

    def settle(self) -> None:
        """Wait until nothing goes on, and no server is resized."""
        while True:
            self._look()
            for server in self.servers:
                if server.going is None and server.state.vm_state == "resized":
                    self._begin(server, "confirm")
            if not any(server.going for server in self.servers):
                return
            time.sleep(1)

    def delete_all(self) -> None:
        """Delete all servers."""
        for server in self.servers:
            self._begin(server, "delete")
        self.settle()

    def boot(
        self, flavor: str, *, port: str = "", host: str = "", image: str = "halted", name: str = ""
    ) -> str:
        """Request a server; return its uuid, or an empty string."""
        name = name or f"day-{self.number}"
        body: dict[str, Any] = {
            "name": name,
            "imageRef": self.images[image],
            "flavorRef": self.flavors[flavor],
            "networks": [{"port": self.ports[port]}] if port else "none",
            **({"host": host} if host else {}),
        }
        begin = time.monotonic()
        answer = self.cloud.request("POST", COMPUTE, "/servers", {"server": body})
        uuid = answer.body["server"]["id"] if answer.status == 202 else ""
        if not uuid:
            self._refused("boot", begin, f"{answer}")
            # It may exist nevertheless.
            found = self.cloud.rows(
                "nova_api",
                f"SELECT instance_uuid FROM build_requests WHERE instance LIKE '%\"{name}\"%'",  # noqa: S608
            ) + self.cloud.rows(
                "nova",
                f"SELECT uuid FROM instances WHERE display_name = '{name}' AND NOT deleted",  # noqa: S608
            )
            uuid = found[0][0] if found else ""
        if uuid:
            server = DayServer(name, flavor, port, uuid)
            server.going = Going("boot", self.number, begin, "")
            self.servers.append(server)
        return uuid

    def _draw(self) -> None:
        """Draw an operation, and begin it."""
        self.number += 1
        chance = random.Random(f"{draws.SEED} {self.number}")
        drawn = [each for each in self.servers if each.name.startswith("day-")]
        idle = [each for each in drawn if each.going is None and each.state.vm_state in _CHOICES]
        if not idle or chance.random() < 0.5 * (1 - len(drawn) / MOST_SERVERS):
            if len(drawn) < MOST_SERVERS:
                flavor = chance.choice(self._flavors(list(DRAWN)))
                free = [port for port in PORTS if port not in {each.port for each in drawn}]
                port = chance.choice(free) if free and chance.random() < 0.5 else ""
                self.boot(flavor, port=port)
            return
        server = chance.choice(idle)
        choices = dict(_CHOICES[server.state.vm_state])
        if not FLAVORS[server.flavor].has_topology:  # it cannot move to the other host
            choices.pop("live migration", None)
            choices.pop("cold migration", None)
        name = chance.choices(list(choices), list(choices.values()))[0]
        others = self._flavors([each for each in DRAWN if each != server.flavor])
        self._begin(server, name, chance.choice(others))

    def _flavors(self, wanted: list[str]) -> list[str]:
        """Leave out what no host has room for."""
        is_full = any(not each.flavors.isdisjoint(DEDICATED) for each in self.servers)
        return [each for each in wanted if not (is_full and each in DEDICATED)]

    def _begin(self, server: DayServer, name: str, flavor: str = "") -> None:
        """Send the request of an operation."""
        begin = time.monotonic()
        path = f"/servers/{server.uuid}"
        if name == "delete":
            answer = self.cloud.request("DELETE", COMPUTE, path)
        else:
            action = _ACTIONS.get(name, {"resize": {"flavorRef": self.flavors.get(flavor)}})
            answer = self.cloud.request("POST", COMPUTE, f"{path}/action", action)
        if answer.status not in (202, 204):
            self._refused(name, begin, f"{server.name}, {answer}")
            server.going = Going("removal", self.number, begin, server.state.host)
            return
        server.going = Going(name, self.number, begin, server.state.host, begin + AGAIN)
        if name == "resize":
            server.flavors = {server.flavor, flavor}

    def _refused(self, name: str, begin: float, text: str) -> None:
        if self.outages.since(begin):
            self.lost[f"{name} (refused)"] += 1
            report(f"{self.number}: {name} refused, {self.outages.since(begin)}: {text[:200]}")
        else:
            self._fail(self.number, f"{name} refused: {text[:600]}")

    def _fail(self, number: int, text: str) -> None:
        self.failures.append(f"CPU_TIERS_SEED={draws.SEED}, operation {number}: {text}")
        report(f"FAILURE {self.failures[-1]}")

    def _look(self) -> None:
        """Note the states of all servers, and what has ended."""
        query = (
            "SELECT uuid, (SELECT name FROM nova_api.flavors f WHERE f.id = instance_type_id),"
            " vm_state, host, COALESCE(task_state, 'NULL'), COALESCE((SELECT status"
            " FROM migrations m WHERE m.instance_uuid = i.uuid ORDER BY id DESC LIMIT 1), 'NULL')"
            " FROM instances i WHERE NOT deleted"
        )
        cells = ("nova", "nova_cell0")
        rows = [row for database in cells for row in self.cloud.rows(database, query)]
        states = {uuid: State(*rest) for uuid, _, *rest in rows}
        flavors = {uuid: flavor for uuid, flavor, *_ in rows}
        for server in list(self.servers):
            server.state = states.get(server.uuid, GONE)
            server.flavor = flavors.get(server.uuid, server.flavor)
            if server.going:
                self._look_at(server, server.going)

    def _look_at(self, server: DayServer, going: Going) -> None:
        """See whether an operation of a server has ended."""
        now, state = time.monotonic(), server.state
        if going.name in ("delete", "removal"):
            self._removed(server, going)
            return
        is_resting = state.is_resting and state != GONE
        is_done = is_resting and state.vm_state in _ENDS[going.name]
        if going.name == "live migration":
            is_done = is_done and state.host != going.host
        rests_at = min(now, going.rests_at) if is_resting else math.inf
        if not is_done and now < min(going.begin + PATIENCE, rests_at + REST):
            server.going = going._replace(rests_at=rests_at)
            return
        took = f"{now - going.begin:.0f} s, {server.name}, {server.flavor} {server.port}"
        if is_done:
            self.done[going.name] += 1
            server.going = None
            if going.name in ("confirm", "revert"):
                server.flavors = {server.flavor}
            report(f"{going.number}: {going.name}, {took}: {'/'.join(state)}")
            return
        away = [*self.outages.since(going.begin), *self._known(server)]
        if away:
            self.lost[going.name] += 1
            report(f"{going.number}: {going.name} lost, {took}: {'/'.join(state)}, {away}")
        else:
            self._fail(going.number, f"{going.name}, {took}, {server.uuid}: {'/'.join(state)}")
        self._remove(server, going._replace(name="removal", begin=now))

    def _known(self, server: DayServer) -> list[str]:
        """Return the fault of a server if Nova is known for it."""
        query = f"SELECT message FROM instance_faults WHERE instance_uuid = '{server.uuid}'"  # noqa: S608
        messages = [message for (message,) in self.cloud.rows("nova", query)]
        return [message for message in messages if NOVAS_RACE in message]

    def _removed(self, server: DayServer, going: Going) -> None:
        """See whether a server is gone; ask again."""
        now = time.monotonic()
        path = f"/servers/{server.uuid}"
        is_gone = server.state == GONE and self.cloud.request("GET", COMPUTE, path).status == 404
        if is_gone and (not server.port or self._has_let_go(server.port)):
            self.done[going.name] += 1
            self.servers.remove(server)
            report(f"{going.number}: {going.name}, {now - going.begin:.0f} s, {server.name}")
        elif now > going.begin + REMOVAL_PATIENCE:
            self._fail(going.number, f"{server.uuid} stays: {'/'.join(server.state)}")
            self.servers.remove(server)
        elif now > going.ask_at:
            if now > going.begin + HANGS:
                self._restart_hanging(server.state.host)
            self._remove(server, going)

    def _has_let_go(self, port: str) -> bool:
        """Tell whether a port is bound to one host; replace a port that is bound to two.

        A lost live migration leaves the second binding if Nova cannot delete it while Neutron is
        away. Neutron refuses the next server with this port on that host.
        """
        query = (
            "SELECT ports.name, ml2_port_bindings.status"
            " FROM ports JOIN ml2_port_bindings ON port_id = ports.id"
        )
        statuses = [status for name, status in self.cloud.rows("neutron", query) if name == port]
        if statuses and "INACTIVE" not in statuses:
            return True
        report(f"{port} is replaced: its bindings are {statuses}")
        delete = f"openstack port delete {port} && " if statuses else ""
        create = f"openstack {NEW_PORT} {port} -f value -c id"
        status, made = self.cloud.shell.run(delete + create)
        if status == 0:
            self.ports[port] = made.strip()
        return status == 0

    def _restart_hanging(self, host: str) -> None:
        """Restart a nova-compute that hangs, once in five minutes.

        While RabbitMQ is away, Nova 34 with native threads blocks libvirt's thread for events;
        libvirtd ends the connection, and the callback waits for a lock of its own thread.
        """
        if host not in HOSTS or time.monotonic() < self._restart_at.get(host, 0.0):
            return
        self._restart_at[host] = time.monotonic() + REMOVAL_PATIENCE
        self.hung.append(host)
        outage = self.outages.begin("a nova-compute that hung")
        self.cloud.on(host, "supervisorctl restart nova-compute")
        self.outages.end(outage)
        report(f"nova-compute on {host} hung, and was restarted")

    def _remove(self, server: DayServer, going: Going) -> None:
        """Have a server deleted, whatever its state is."""
        path = f"/servers/{server.uuid}"
        reset = {"os-resetState": {"state": "error"}}
        self.cloud.request("POST", COMPUTE, f"{path}/action", reset)
        self.cloud.request("DELETE", COMPUTE, path)
        self.lost_servers.add(server.uuid)
        server.going = going._replace(ask_at=time.monotonic() + AGAIN)
