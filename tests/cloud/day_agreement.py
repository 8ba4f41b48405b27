"""Nova's database, Placement, Neutron, libvirt and the control groups agree on servers at rest."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from tests.cloud.day_hosts import FLAVORS, PORT_CLAIMS
from tests.cloud.holdings import AUDIT, GUESTS, Checker
from tests.cloud.moving_server import RESTING
from tests.cloud.rest import PLACEMENT, Cloud
from tests.cloud.two_hosts import HOSTS

DEFAULT_WEIGHTS = 1024, 100
"""The kernel's weight of a guest without a tier, in cgroup v1 and v2."""
_HELD_BY_PORTS = (
    "SELECT ports.name, device_id, ml2_port_bindings.host, ml2_port_bindings.status, profile"
    " FROM ports JOIN ml2_port_bindings ON port_id = ports.id"
)
_GROUPS = (
    "cd /sys/fs/cgroup && find . -type d -path '*machine*' -name '*qemu*' -prune | wc -l;"
    " ls /run/libvirt/qemu/*.xml 2>/dev/null | wc -l"
)


class Agreement:
    """Compares everything that knows of servers.

    :param lost: servers that were deleted because an operation did not end. As stock Nova may,
        it may leave allocations of their migrations, which a command of Nova removes.
    :ivar compared: how many ports, guests and consumers agreed so far.
    :ivar left: the allocations that were left over by lost servers, and removed.
    """

    def __init__(self, cloud: Cloud, lost: Set[str]) -> None:
        self.cloud, self.lost = cloud, lost
        self.left: list[str] = []
        self.compared: Counter[str] = Counter()
        self._checker = Checker(cloud, has_tiers=True)

    def breaches(self) -> list[str]:
        """Return what does not agree; nothing may go on, and no server be resized."""
        self._remove_leaks()
        servers = self._servers()
        ports = list(self._ports(servers))
        return [
            *ports,
            *self._allocations(servers),
            *self._guests(servers),
            *self._migrations(),
            *self._commands(),
            *self._checker.tracebacks(),
        ]

    def leftovers(self) -> list[str]:
        """Return what is left after all servers were deleted."""
        self._remove_leaks()
        left = [f"allocations of {consumer}: {held}" for consumer, held in self.held().items()]
        left += [f"server {uuid}: {server}" for uuid, server in self._servers().items()]
        for name, *rest in self.cloud.rows("neutron", _HELD_BY_PORTS):
            if rest[0] or rest[1] or "allocation" in rest[3]:
                left.append(f"port {name}: {rest}")
        for host in HOSTS:
            found = self.cloud.on(host, _GROUPS)[1].split()
            if found != ["0", "0"]:
                left.append(f"control groups and guests of {host}: {found}")
        return [*left, *self._migrations(), *self._checker.tracebacks()]

    def held(self) -> dict[str, dict[str, Mapping[str, int]]]:
        """Return the allocations by consumer and name of the provider."""
        found: dict[str, dict[str, Mapping[str, int]]] = {}
        for (consumer, provider), amounts in self._checker.held().items():
            found.setdefault(consumer, {})[provider] = amounts
        return found

    def _remove_leaks(self) -> None:
        """Remove what lost servers left, as docs/admin/numa.rst says."""
        owners = dict(self.cloud.rows("nova", "SELECT uuid, instance_uuid FROM migrations"))
        leaks = {uuid for uuid in self.held() if owners.get(uuid, uuid) in self.lost}
        if not leaks:
            return
        self.cloud.on("compute1", "nova-manage placement audit --delete")
        rest = leaks & self.held().keys()
        self.left += [f"{uuid}{', in part after the audit' * (uuid in rest)}" for uuid in leaks]
        for uuid in rest:
            self.cloud.request("DELETE", PLACEMENT, f"/allocations/{uuid}")

    def _servers(self) -> dict[str, dict[str, str]]:
        """Return the servers of Nova's database."""
        query = (
            "SELECT uuid, host, vm_state, COALESCE(task_state, ''), COALESCE((SELECT name FROM"
            " nova_api.flavors f WHERE f.id = instance_type_id), '') FROM instances"
            " WHERE NOT deleted"
        )
        names = ("uuid", "host", "state", "task", "flavor")
        cells = ("nova", "nova_cell0")
        rows = [
            dict(zip(names, row, strict=False)) for c in cells for row in self.cloud.rows(c, query)
        ]
        return {row.pop("uuid"): row for row in rows}

    def _ports(self, servers: Mapping[str, Any]) -> Iterator[str]:
        """Note the port of each server."""
        for name, server, host, status, profile in self.cloud.rows("neutron", _HELD_BY_PORTS):
            if not server:
                if host or "allocation" in profile:
                    yield f"port {name} of no server: {host} {profile}"
                continue
            if server not in servers:
                yield f"port {name} of the lost server {server}"
            elif (host, status) != (servers[server]["host"], "ACTIVE"):
                yield f"port {name} of {server} on {host}, {status}"
            else:
                self.compared["ports"] += 1
                servers[server]["port"] = name
                yield from self._profile(name, host, profile)

    def _profile(self, port: str, host: str, profile: str) -> Iterator[str]:
        """Compare the providers in the profile of a port with those of its host."""
        providers = self.cloud.get(PLACEMENT, "/resource_providers")["resource_providers"]
        names = {each["uuid"]: each["name"] for each in providers}
        found = {names.get(uuid, uuid) for uuid in json.loads(profile)["allocation"].values()}
        if found != {f"{host}:{name}" for name in PORT_CLAIMS}:
            yield f"port {port} on {host} has {found}"

    def _allocations(self, servers: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
        expected = {}
        for uuid, server in servers.items():
            host = server["host"]
            on_ports = {f"{host}:{name}": amounts for name, amounts in PORT_CLAIMS.items()}
            claims = FLAVORS[server["flavor"]].claims(host)
            expected[uuid] = {**claims, **(on_ports if "port" in server else {})}
        held = self.held()
        for consumer in expected.keys() | held.keys():
            if expected.get(consumer) == held.get(consumer):
                self.compared["allocations"] += 1
                continue
            about = servers.get(consumer, "no server")
            yield f"{consumer}, {about}, has {held.get(consumer)}, not {expected.get(consumer)}"

    def _guests(self, servers: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
        for host in HOSTS:
            status, output = self.cloud.on(host, f"python3 {GUESTS}")
            assert status == 0, output
            guests = json.loads(output.splitlines()[-1])
            here = {uuid: each for uuid, each in servers.items() if each["host"] == host}
            running = {uuid for uuid, each in here.items() if each["state"] != "stopped"}
            if guests.keys() != running:
                yield f"guests of {host}: {sorted(guests)}, not {sorted(running)}"
            for uuid in guests.keys() & running:
                yield from self._guest(uuid, FLAVORS[here[uuid]["flavor"]].weight, guests[uuid])
                pins = FLAVORS[here[uuid]["flavor"]].pins
                if guests[uuid]["cpus"] != pins:
                    yield f"{uuid} runs on {guests[uuid]['cpus']}, not {pins}"

    def _guest(self, uuid: str, weight: int | None, guest: Mapping[str, Any]) -> Iterator[str]:
        """Compare the weight in libvirt and in the kernel with that of the flavor."""
        self.compared["guests"] += 1
        in_kernel = DEFAULT_WEIGHTS if weight is None else (weight,)
        if guest["shares"] != weight or guest["weight"] not in in_kernel:
            yield f"{uuid} weighs {guest['shares']}, in the kernel {guest['weight']}, not {weight}"

    def _migrations(self) -> Iterator[str]:
        """Yield the migrations of which something goes on."""
        query = (
            "SELECT uuid, status, migration_type, instance_uuid FROM migrations WHERE NOT deleted"
        )
        for uuid, status, kind, server in self.cloud.rows("nova", query):
            if status not in RESTING and server not in self.lost:
                yield f"{kind} {uuid} of {server} is {status}"

    def _commands(self) -> Iterator[str]:
        """Ask the commands of cpu-tiers and of Nova."""
        for host in HOSTS:
            status, output = self.cloud.on(host, AUDIT)
            found = json.loads(output) if status == 3 else []
            if status not in (0, 3):
                yield f"audit of {host}: {status} {output}"
            for finding in found:
                if finding["kind"] not in ("untiered", "oversold"):
                    yield f"{host}: {finding['kind']}: {finding['where']}: {finding['found']}"
        status, output = self.cloud.on("compute1", "cpu-tiers allocation heal --plan -f json")
        if status or json.loads(output.splitlines()[-1]):
            yield f"heal: {status} {output[-500:]}"
        status, output = self.cloud.on("compute1", "nova-manage placement audit")
        if status:
            yield f"nova-manage placement audit: {status} {output[-500:]}"
