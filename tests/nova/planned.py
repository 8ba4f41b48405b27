"""Hosts of 800 shares over Nova's services, and ``cpu-tiers plan``, which reads them over HTTP."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.nova.cloud import SHARES, Cloud
from tests.nova.command_line import services_of, streams


class PlannedCloud(LibvirtMigrationMixin, Cloud):
    """Hosts of 800 shares, and servers whose flavors claim 100 for each vCPU."""

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
