"""The allocations, weights and CPUs of servers at rest agree with the flavors."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cloud.moving_server import RESTING
from tests.cloud.rest import PLACEMENT, Cloud
from tests.cloud.tiers import SHARES, TIERS, Tier
from tests.cloud.tracebacks import of_cpu_tiers
from tests.cloud.two_hosts import HOSTS

GUESTS = Path(__file__).with_name("guests.py")
AUDIT = "cpu-tiers --quiet host audit --ignore short --ignore outweighed --interval 0 -f json"
Held = dict[tuple[str, str], Mapping[str, int]]
"""Amounts by consumer and host."""


class Checker:
    """Compares Nova's database, Placement, libvirt and the kernel with each other.

    :param has_tiers: the hosts have cpu-tiers and report shares.
    """

    def __init__(self, cloud: Cloud, *, has_tiers: bool) -> None:
        self.cloud, self.has_tiers = cloud, has_tiers
        self.tracebacks()

    def breaches(self) -> list[str]:
        """Return what is wrong; the first word is the kind of the breach."""
        return [*self.allocations(), *self.guests(), *self.audits(), *self.tracebacks()]

    def remove_leaks(self) -> None:
        """Remove the allocations of consumers of which nothing is left."""
        for consumer, _ in self.held().keys() - self._expected().keys():
            self.cloud.request("DELETE", PLACEMENT, f"/allocations/{consumer}")

    def claims(self, tier: Tier) -> Mapping[str, int]:
        """Return what a server of a tier claims."""
        return {
            name: amount
            for name, amount in tier.claims.items()
            if self.has_tiers or name != SHARES
        }

    def held(self) -> Held:
        """Return what all consumers have in Placement."""
        found: Held = {}
        for provider in self.cloud.get(PLACEMENT, "/resource_providers")["resource_providers"]:
            path = f"/resource_providers/{provider['uuid']}/allocations"
            for consumer, body in self.cloud.get(PLACEMENT, path)["allocations"].items():
                found[consumer, provider["name"]] = body["resources"]
        return found

    def servers(self) -> list[list[str]]:
        """Return the uuid, name, state and host of each server; the name is that of the flavor."""
        query = "SELECT uuid, display_name, vm_state, host FROM instances WHERE NOT deleted"
        return self.cloud.rows("nova", query)

    def _expected(self) -> dict[tuple[str, str], Tier]:
        """Return the tier of each consumer on each host."""
        flavors = {uuid: TIERS[name] for uuid, name, _, _ in self.servers()}
        expected = {
            (uuid, host): flavors[uuid] for uuid, _, _, host in self.servers() if host != "NULL"
        }
        states = {uuid: state for uuid, _, state, _ in self.servers()}
        query = "SELECT uuid, source_node, instance_uuid, status, migration_type FROM migrations"
        for uuid, host, server, status, kind in self.cloud.rows("nova", query):
            moves = status not in RESTING or (
                status == "finished" and states.get(server) == "resized"
            )
            if server in flavors and kind == "evacuation" and (moves or status == "done"):
                expected[server, host] = flavors[server]  # until the lost host returns
            elif server in flavors and moves:
                expected[uuid, host] = flavors[server]
        return expected

    def allocations(self) -> Iterator[str]:
        expected, held = self._expected(), self.held()
        flavors = {uuid: TIERS[name] for uuid, name, _, _ in self.servers()}
        owners = dict(self.cloud.rows("nova", "SELECT uuid, instance_uuid FROM migrations"))
        for consumer, host in expected.keys() - held.keys():
            yield f"lost: {consumer} has no allocations on {host}"
        for (consumer, host), amounts in held.items():
            if (consumer, host) not in expected:
                yield f"leaked: {consumer} has {amounts} on {host}"
            tier = flavors.get(owners.get(consumer, consumer))
            if tier and amounts != self.claims(tier):
                yield f"partial: {consumer} has {amounts} on {host}"

    def guests(self) -> Iterator[str]:
        places = {uuid: (TIERS[name], host) for uuid, name, _, host in self.servers()}
        states = {uuid: state for uuid, _, state, _ in self.servers()}
        for host in HOSTS:
            guests = self._guests_of(host)
            for uuid, guest in guests.items():
                if places.get(uuid, (None, ""))[1] != host:
                    yield f"stray: guest {uuid} on {host}"
                else:
                    yield from self._guest(places[uuid][0], uuid, guest)
            for uuid, (_, place) in places.items():
                if place == host and states[uuid] == "active" and uuid not in guests:
                    yield f"absent: guest {uuid} on {host}"

    def _guests_of(self, host: str) -> dict[str, Any]:
        status, output = self.cloud.on(host, f"python3 {GUESTS}")
        assert status == 0, output
        guests: dict[str, Any] = json.loads(output.splitlines()[-1])
        return guests

    def _guest(self, tier: Tier, uuid: str, guest: Mapping[str, Any]) -> Iterator[str]:
        if self.has_tiers and {guest["shares"], guest["weight"]} != {tier.weight}:
            yield f"weight: {uuid} has {guest['shares']}, and {guest['weight']} in the kernel"
        if guest["cpus"] != tier.cpus:
            yield f"pinned: {uuid} runs on {guest['cpus']}, not {tier.cpus}"

    def audits(self) -> Iterator[str]:
        """Audit the hosts with servers."""
        for host in {host for *_, host in self.servers()} & set(HOSTS) if self.has_tiers else ():
            status, output = self.cloud.on(host, AUDIT)
            if status not in (0, 3):
                yield f"audit: on {host} {status}: {output}"
            elif status == 3:
                for finding in json.loads(output):
                    yield f"finding: {finding['kind']}: {finding['where']}: {finding['found']}"

    def tracebacks(self) -> list[str]:
        """Return the errors that code of cpu-tiers has logged since the last time."""
        new = (
            "cd /var/log; for each in nova-*.log */nova-*.log; do"
            " tail -c +$(($(cat /run/${each//\\//-}.size 2>/dev/null || echo 0) + 1)) $each;"
            " wc -c < $each > /run/${each//\\//-}.size; done"
        )
        return [
            f"raised: {line}"
            for line in of_cpu_tiers(self.cloud.on("compute1", new)[1].splitlines())
        ]
