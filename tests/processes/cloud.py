"""Hosts and servers of a cloud whose services are processes."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from lxml import etree

from tests.processes import configuration
from tests.processes.client import Client
from tests.processes.configuration import Sections
from tests.processes.control import Control
from tests.processes.daemons import Daemon, kill, wait_for
from tests.processes.stand_ins import IMAGE

FAKE = (sys.executable, "-m", "tests.processes.fake_libvirt", "--config-file")
OURS: Sections = {
    "DEFAULT": {"compute_driver": "cpu_tiers.LibvirtDriver"},
    "libvirt": {"report_vcpu_shares": True},
}
"""What an operator writes on each compute host."""

_COMPLAINT = re.compile(r" (WARNING|ERROR|CRITICAL) cpu_tiers| (ERROR|CRITICAL) nova")


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A cloud without hosts; :meth:`start_compute` starts a host.

    :ivar forgiven: lines of logs that a test has brought about.
    """

    control: Control
    computes: dict[str, Daemon] = field(default_factory=dict)
    forgiven: set[str] = field(default_factory=set)

    @property
    def nova(self) -> Client:
        return self.control.nova

    @property
    def placement(self) -> Client:
        return self.control.placement

    def home(self, host: str) -> Path:
        """Return the folder of a host."""
        return self.control.services.folder / host

    def start_compute(
        self,
        name: str,
        *parts: Sections,
        command: Sequence[str] = FAKE,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start nova-compute on a new host with this name."""
        home = self.home(name)
        (home / "instances").mkdir(parents=True, exist_ok=True)
        self.computes[name] = self.control.services.add(
            f"nova-compute-{name}",
            [*command, str(home / "nova.conf")],
            **{"FAKE_NAME": name, "FAKE_DOMAINS": str(home), **env},
        )
        self.restart_compute(name, *parts)
        self.wait_until(lambda: name in self.mapped(), f"{name} is in the cell")

    def restart_compute(self, name: str, *parts: Sections) -> None:
        """Start nova-compute again, with this configuration."""
        self.stop_compute(name, *parts)
        before = self.control.heartbeat("nova-compute", name)
        self.computes[name].start(lambda: self.control.heartbeat("nova-compute", name) != before)

    def stop_compute(self, name: str, *parts: Sections) -> None:
        """Kill nova-compute, and write this configuration for its next start.

        Nova takes seven seconds to end by itself.
        """
        home = self.home(name)
        own: Sections = {"DEFAULT": {"host": name, "state_path": home}}
        kill([self.computes[name]])
        configuration.write(home / "nova.conf", self.control.common, OURS, own, *parts)

    def remove_compute(self, name: str) -> None:
        """Kill nova-compute and delete its host, so that the host gets no server."""
        kill([self.computes[name]])
        url = f"/os-services?binary=nova-compute&host={name}"
        for service in self.nova.get(url).body["services"]:
            self.nova.ask("DELETE", f"/os-services/{service['id']}")

    def mapped(self) -> set[str]:
        """Return the hosts known to nova-scheduler in the cell v2."""
        hypervisors = self.nova.get("/os-hypervisors/detail").body["hypervisors"]
        return {hypervisor["service"]["host"] for hypervisor in hypervisors}

    def flavor(self, specs: Mapping[str, str], *, vcpus: int = 1, disk_gb: int = 1) -> str:
        """Make a flavor of 512 MiB; return its id."""
        sizes = {"name": str(uuid4()), "vcpus": vcpus, "ram": 512, "disk": disk_gb}
        body = self.nova.post("/flavors", {"flavor": sizes}).body
        uuid: str = body["flavor"]["id"]
        self.nova.post(f"/flavors/{uuid}/os-extra_specs", {"extra_specs": dict(specs)})
        return uuid

    def boot(self, flavor: str, **values: Any) -> str:
        """Boot a server, wait until the server is active, and return its uuid."""
        (server,) = self.boot_many(flavor, 1, **values)
        return server

    def boot_many(self, flavor: str, count: int, **values: Any) -> list[str]:
        """Boot servers in one request, wait until all are active, and return their uuids."""
        before = self.servers()
        self.request(flavor, min_count=count, max_count=count, **values)
        uuids = sorted(self.servers() - before)
        assert len(uuids) == count
        for uuid in uuids:
            self.wait_for(uuid, "ACTIVE")
        return uuids

    def request(self, flavor: str, **values: Any) -> str:
        """Request a server, and return its uuid.

        :raises AssertionError: nova-api refuses the request.
        """
        server = {"name": "server", "flavorRef": flavor, "imageRef": IMAGE, "networks": "none"}
        body = self.nova.post("/servers", {"server": {**server, **values}}).body
        uuid: str = body["server"]["id"]
        return uuid

    def is_settled(self, server: str) -> bool:
        """Tell whether a server is active, or has no host."""
        shown = self.nova.get(f"/servers/{server}").body["server"]
        return shown["status"] in {"ACTIVE", "ERROR"} and not shown["OS-EXT-STS:task_state"]

    def act(self, server: str, action: Mapping[str, Any], state: str) -> None:
        """Run an action of a server, and wait for the state after the action."""
        self.nova.post(f"/servers/{server}/action", dict(action))
        self.wait_for(server, state)

    def wait_for(self, server: str, state: str) -> None:
        """Wait until a server is in a state and has no task."""

        def reached() -> bool:
            shown = self.nova.get(f"/servers/{server}").body["server"]
            assert shown["status"] != "ERROR", shown.get("fault")
            actions = self.nova.get(f"/servers/{server}/os-instance-actions").body
            for last in actions["instanceActions"][:1]:
                assert last["message"] != "Error", self._why(server, last["request_id"])
            return shown["status"] == state and not shown["OS-EXT-STS:task_state"]

        self.wait_until(reached, f"{server} is {state}")

    def _why(self, server: str, request: str) -> str:
        """Return the details of the failed events of an action."""
        action = self.nova.get(f"/servers/{server}/os-instance-actions/{request}").body
        return "\n".join(str(event["details"]) for event in action["instanceAction"]["events"])

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; on a time-out show the last log lines of each service."""
        wait_for(condition, what, self.control.services.daemons)

    def delete(self, *servers: str) -> None:
        """Delete servers, and wait until Nova has deleted all of them."""
        for server in servers:
            self.nova.ask("DELETE", f"/servers/{server}")
        self.wait_until(lambda: self.servers().isdisjoint(servers), f"{servers} are gone")

    def servers(self) -> set[str]:
        """Return the uuids of all servers."""
        return {server["id"] for server in self.nova.get("/servers").body["servers"]}

    def host_of(self, server: Mapping[str, Any]) -> str:
        """Return the present host of a server with this ``id``."""
        body = self.nova.get(f"/servers/{server['id']}").body
        host: str = body["server"]["OS-EXT-SRV-ATTR:host"]
        return host

    def node_of(self, server: str) -> str:
        """Return the name of the compute node, and so of the root provider, of a server."""
        body = self.nova.get(f"/servers/{server}").body
        name: str = body["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        return name

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return the allocations of a consumer, by the names of providers."""
        providers = self.placement.get("/resource_providers").body["resource_providers"]
        names = {provider["uuid"]: provider["name"] for provider in providers}
        allocations = self.placement.get(f"/allocations/{consumer}").body["allocations"]
        return {names[uuid]: body["resources"] for uuid, body in allocations.items()}

    def used(self) -> dict[str, dict[str, int]]:
        """Return the usages of all providers with usages, by name."""
        by_provider = {}
        for provider in self.placement.get("/resource_providers").body["resource_providers"]:
            usages = self.placement.get(f"/resource_providers/{provider['uuid']}/usages").body
            if in_use := {name: used for name, used in usages["usages"].items() if used}:
                by_provider[provider["name"]] = in_use
        return by_provider

    def inventories(self, host: str) -> dict[str, object]:
        """Return the inventories of the providers of a host, by name."""
        inventories = {}
        for provider in self.placement.get("/resource_providers").body["resource_providers"]:
            if re.fullmatch(rf"{re.escape(host)}(_.*)?", provider["name"]):
                url = f"/resource_providers/{provider['uuid']}/inventories"
                inventories[provider["name"]] = self.placement.get(url).body["inventories"]
        return inventories

    def add_trait(self, host: str, trait: str) -> None:
        """Give the root provider of a host one more trait of the site."""
        url = f"/resource_providers?name={host}"
        (provider,) = self.placement.get(url).body["resource_providers"]
        url = f"/resource_providers/{provider['uuid']}/traits"
        traits = self.placement.get(url).body
        self.placement.ask("PUT", f"/traits/{trait}")
        self.placement.ask("PUT", url, {**traits, "traits": [*traits["traits"], trait]})

    def domain(self, server: str, host: str) -> Any:
        """Return the XML of a guest in the fake libvirt."""
        return etree.parse(self.home(host) / f"{server}.xml").getroot()

    def complaints(self) -> list[str]:
        """Return warnings of cpu-tiers and errors of Nova in the logs, but the forgiven."""
        daemons = self.control.services.daemons
        lines = [line for daemon in daemons for line in daemon.text.splitlines()]
        complaints = [line for line in lines if _COMPLAINT.search(line)]
        return [line for line in complaints if line not in self.forgiven]
