"""Where servers are, by the words of a real nova-api: for ``cloud show``, the bill and plans."""

import json
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    AGGREGATES,
    IMAGE_TRAITS,
    SnapshotAggregate,
    SnapshotServer,
)
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.nova.cloud import SHARES, Cloud
from tests.nova.command_line import services_of, streams

ORPHAN = "5f5a0a4e-0000-4000-8000-00000000000a"
COPY = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"


class TestPlaces(LibvirtMigrationMixin, Cloud):
    """Three hosts of 800 shares; a server of 3 vCPUs and 300 shares on one."""

    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        path = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        path.write_text("[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n")
        self.conf = str(path)
        self.arrives = threading.Event()
        self.arrives.set()
        self.useFixture(fixtures.MockPatch(COPY, return_value="{}"))
        self.roots = {
            host: self.start_host(host, **{SHARES: 800}) for host in ("one", "two", "three")
        }
        self.gold, self.small = (self.tier(f"gold-{n}", "100", vcpus=n) for n in (3, 2))
        self.uuid = self.boot_on("one", self.gold)

    def command(self, *arguments: str, status: int = 0) -> Any:
        """Return what a command prints as JSON."""
        argv = ["--config-file", self.conf, *arguments]
        with (
            mock.patch.object(NovaConfCommand, "services", return_value=services_of(self)),
            streams() as (out, error),
        ):
            code = app.main(argv)
        assert code == status, out.getvalue() + error.getvalue()
        return json.loads(out.getvalue() or "null")

    def snapshot(self) -> Snapshot:
        path = Path(self.useFixture(fixtures.TempDir()).path, "cloud.json")
        self.command("cloud", "snapshot", str(path))
        return Snapshot.parse(json.loads(path.read_text()), where=str(path))

    def bill(self) -> dict[str, tuple[int, int]]:
        """Return the servers and the shares of each project; ``None`` is of no server."""
        rows = self.command("cloud", "show", "--group-by", "project", "-f", "json")
        return {row["project"]: (row["servers"], row["shares"]) for row in rows}

    def unsettled(self, host: str) -> dict[str, dict[str, Any]]:
        """Return what ``cloud show`` names of a host, by the consumer."""
        rows = self.command("cloud", "show", "-f", "json")
        of_host = next(row["unsettled"] for row in rows if row["host"] == host)
        return {each["consumer"]: each for each in of_host}

    def survives(self) -> str:
        return str(self.command("plan", "survive", "-f", "json")["verdict"])

    def put(self, consumer: str, host: str, resources: dict[str, int]) -> None:
        body = self.placement.get(f"/allocations/{consumer}", version="1.28").body
        claim = {
            "allocations": {self.roots[host]: {"resources": resources}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": body.get("consumer_generation"),
        }
        assert self.placement.put(f"/allocations/{consumer}", claim, version="1.28").status == 204

    def test_a_server_at_rest(self) -> None:
        zone = {"aggregate": {"name": "fast", "availability_zone": "az1"}}
        aggregate = self.api.post_aggregate(zone)["id"]
        self.api.add_host_to_aggregate(aggregate, "two")
        body = self._build_server(flavor_id=self.small, networks="none", az="az1")
        hints = {"different_host": [self.uuid]}
        asked = self.api.post_server({"server": body, "os:scheduler_hints": hints})["id"]
        self._wait_for_state_change({"id": asked}, "ACTIVE")
        self.api.post_server_action(asked, {"lock": {"locked_reason": "mine"}})
        servers = self.snapshot().servers
        assert servers is not None
        # The fixtures have no Glance over HTTP.
        assert servers.unread == {IMAGE_TRAITS}
        server = servers.servers[asked]
        assert server.image is not None
        assert server.flavor is not None
        assert server == SnapshotServer(
            name=server.name,
            flavor=server.flavor,
            state="ACTIVE",
            is_locked=True,
            lock_reason="mine",
            host="two",
            project=self.api.project_id,
            zone="az1",
            hints={"different_host": (self.uuid,)},
            image=server.image,
        )
        assert (servers.servers[self.uuid].zone, servers.servers[self.uuid].hints) == ("", {})
        assert [*servers.aggregates.values()] == [
            SnapshotAggregate(
                name="fast",
                zone="az1",
                hosts=("two",),
                metadata={"availability_zone": "az1"},
            )
        ]
        assert AGGREGATES not in servers.unread
        assert self.unsettled("one") == {}
        assert self.bill() == {self.api.project_id: (2, 500)}

    def test_evacuated_and_the_old_host_is_down(self) -> None:
        self.go_down("one")
        self._evacuate_server({"id": self.uuid})
        self.api.post_server_action(self.uuid, {"os-start": None})
        self._wait_for_state_change({"id": self.uuid}, "ACTIVE")
        new = self.host_of({"id": self.uuid})
        left = self.unsettled("one")[self.uuid]
        assert (left["kind"], left["is_on"]) == (
            "left on the host that the server was evacuated from",
            new,
        )
        assert self.bill() == {self.api.project_id: (1, 300), None: (1, 300)}
        plan = self.command("plan", "drain", new, "-f", "json")
        (move,) = plan["moves"]
        self.server = self.api.get_server(self.uuid)
        self.src, self.dest = self.computes[new], self.computes[move["host"]]
        self._live_migrate(self.server, host=move["host"])
        assert self.held(self.uuid).keys() == {move["to"]}
        assert self.unsettled("one") == {}

    def test_a_resize_that_nobody_confirmed(self) -> None:
        self._resize_server({"id": self.uuid}, self.small)
        migration = self.migration_of(self.uuid)
        source = self.unsettled("one")[migration]
        assert source["server"] == self.uuid
        assert source["mend"].startswith(f"openstack server resize confirm {self.uuid}")
        assert self.bill() == {self.api.project_id: (1, 200), None: (1, 300)}
        (stays,) = self.command("plan", "drain", "one", "-f", "json", status=3)["stay"]
        assert "that is not confirmed: openstack server resize confirm" in stays["why"]
        hosts = self.snapshot()
        assert hosts.servers is not None
        assert hosts.servers.migrations[migration].status == "finished"
        self._confirm_resize({"id": self.uuid})
        assert self.unsettled("one") == {}
        assert self.bill() == {self.api.project_id: (1, 200)}

    def _migrate_stub(self, *arguments: Any, **options: Any) -> None:
        """Have the guest on its way until the test has looked."""
        self.arrives.wait(300)
        super()._migrate_stub(*arguments, **options)

    def test_a_live_migration_in_progress(self) -> None:
        self.arrives.clear()
        self.server = self.api.get_server(self.uuid)
        self.src, self.dest = self.computes["one"], self.computes["two"]
        move_it = {"os-migrateLive": {"host": "two", "block_migration": "auto"}}
        self.api.post_server_action(self.uuid, move_it)
        self._wait_for_migration_status(self.server, ["running"])
        try:
            snapshot, bill = self.snapshot(), self.bill()
            one, two = self.unsettled("one"), self.unsettled("two")
        finally:
            self.arrives.set()
        self._wait_for_migration_status(self.server, ["completed"])
        assert snapshot.servers is not None
        ((migration, move),) = snapshot.servers.migrations.items()
        assert (move.kind, move.source, move.target) == ("live-migration", "one", "two")
        assert one[migration]["kind"] == "the source of a migration that is not over"
        assert two[self.uuid]["kind"] == "the target of a move that is not over"
        assert bill == {self.api.project_id: (1, 300), None: (1, 300)}
        assert self.unsettled("one") == self.unsettled("two") == {}

    def test_misplaced(self) -> None:
        held = self.held(self.uuid)["one"]
        self.put(self.uuid, "two", held)
        wrong = self.unsettled("two")[self.uuid]
        assert (wrong["kind"], wrong["is_on"]) == ("on another host than the server", "one")
        assert wrong["mend"].startswith(
            f"openstack resource provider allocation delete {self.uuid}"
        )
        (stays,) = self.command("plan", "drain", "one", "-f", "json", status=3)["stay"]
        assert stays["server"] == self.uuid
        assert self.command("plan", "drain", "two", "-f", "json")["moves"] == []
        assert self.survives().startswith("Yes")

    def test_an_orphan(self) -> None:
        self.put(ORPHAN, "three", {"VCPU": 14, SHARES: 700})
        orphan = self.unsettled("three")[ORPHAN]
        assert orphan["kind"] == "of no server of Nova and of no migration"
        assert orphan["mend"].endswith(f"openstack resource provider allocation delete {ORPHAN}")
        assert self.survives().startswith("Yes")  # nothing of it is evacuated
        self.placement.delete(f"/allocations/{ORPHAN}")
        assert self.unsettled("three") == {}
