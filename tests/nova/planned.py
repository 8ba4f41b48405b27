"""Hosts of 800 shares over Nova's services, and ``cpu-tiers plan``, which reads them over HTTP."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova import context as nova_context
from nova import objects
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.nova.cloud import STOCK
from tests.nova.command_line import services_of, streams
from tests.nova.computes import SHARES, Computes


class PlannedCloud(LibvirtMigrationMixin, Computes):
    """Hosts of 800 shares, and servers whose flavors claim 100 for each vCPU."""

    kind = STOCK
    microversion = "latest"
    options = ""
    """Further lines of nova.conf for the plan, after ``[filter_scheduler]``."""

    def setUp(self) -> None:
        super().setUp()
        path = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        path.write_text(
            f"[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n{self.options}"
        )
        self.conf = str(path)
        self.flavors = {n: self.tier(f"gold-{n}", "100", vcpus=n) for n in (3, 4, 6)}
        self.uuids: dict[str, str] = {}
        self.small = self.tier("small", "10", vcpus=1)
        # The fake libvirt has no disks that a cold migration copies.
        copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy, return_value="{}"))

    def boot_named(self, name: str, vcpus: int, host: str, group: str = "") -> None:
        body = self._build_server(
            name=name, flavor_id=self.flavors[vcpus], networks="none", host=host
        )
        hints = {"os:scheduler_hints": {"group": group}} if group else {}
        server = self.api.post_server({"server": body, **hints})
        self.uuids[name] = self._wait_for_state_change(server, "ACTIVE")["id"]

    def start(self, *hosts: str) -> None:
        for host in hosts:
            self.start_host(host, **{SHARES: 800})

    def plan(self, *arguments: str, status: int | None = 0) -> Mapping[str, Any]:
        """Return what ``cpu-tiers plan`` prints as JSON.

        :param status: the exit status; ``None`` for 0 or 3.
        """
        argv = ["--config-file", self.conf, "plan", *arguments, "-f", "json"]
        services = services_of(self)
        with (
            mock.patch.object(NovaConfCommand, "services", return_value=services),
            streams() as (out, error),
        ):
            code = app.main(argv)
        assert code in ((0, 3) if status is None else (status,)), out.getvalue() + error.getvalue()
        answer: Mapping[str, Any] = json.loads(out.getvalue())
        return answer

    def boot_small(self, name: str, host: str, **body: Any) -> str:
        server = self._build_server(
            name=name, flavor_id=self.small, networks="none", host=host, **body
        )
        uuid: str = self._wait_for_state_change(
            self.api.post_server({"server": server}), "ACTIVE"
        )["id"]
        self.uuids[name] = uuid
        return uuid

    def stored(self, uuid: str) -> objects.Instance:
        return objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), uuid, expected_attrs=["flavor", "system_metadata"]
        )

    def give_specs(self, uuid: str, specs: Mapping[str, str]) -> None:
        """Give the flavor that is embedded in a server extra specs, as if it had booted with them.

        nova-api judges a server by this flavor, and no fake of a device is needed.
        """
        instance = self.stored(uuid)
        instance.flavor.extra_specs = {**instance.flavor.extra_specs, **specs}
        instance.save()

    def act(self, aggregate: int, **action: Mapping[str, Any]) -> None:
        """Change a host aggregate."""
        self.api.api_post(f"/os-aggregates/{aggregate}/action", action)

    def who_stays(self, *hosts: str) -> set[str]:
        """Return the names of the servers that stay, by the plan that empties hosts."""
        answer = self.plan("drain", *hosts, "--cold", status=None)
        assert {each["name"] for each in answer["stay"]}.isdisjoint(
            move["name"] for move in answer["moves"]
        )
        return {each["name"] for each in answer["stay"]}

    def who_is_homeless(self) -> set[str]:
        return {each["name"] for each in self.plan("survive", status=None)["stay"]}

    def is_accepted(self, uuid: str, action: Mapping[str, Any]) -> bool:
        try:
            self.api.post_server_action(uuid, action)
        except OpenStackApiException as error:
            # In one process, nova-conductor's refusal reaches nova-api.
            is_refused = error.response.status_code in (400, 403, 409)
            if not is_refused and "NoValidHost" not in str(error):
                raise
            return False
        return True

    def does_migrate(self, name: str, target: str) -> bool:
        """Have Nova migrate a server, cold if it is off; tell whether it then is on the target."""
        uuid = self.uuids[name]
        self.server = server = self.api.get_server(uuid)
        self.src, self.dest = self.computes[self.host_of(server)], self.computes[target]
        action: dict[str, Any] = {"os-migrateLive": {"host": target, "block_migration": "auto"}}
        if server["status"] == "SHUTOFF":
            action = {"migrate": {"host": target}}
        if not self.is_accepted(uuid, action):
            return False
        server = self._wait_for_server_parameter(server, {"OS-EXT-STS:task_state": None})
        return bool(self.host_of(server) == target)

    def does_evacuate(self, name: str) -> bool:
        """Have Nova evacuate a server of a host that is down; tell whether it left the host."""
        uuid = self.uuids[name]
        before = self.host_of(self.api.get_server(uuid))
        if not self.is_accepted(uuid, {"evacuate": {}}):
            return False
        server = self._wait_for_server_parameter({"id": uuid}, {"OS-EXT-STS:task_state": None})
        return bool(self.host_of(server) != before)
