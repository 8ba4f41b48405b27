"""One cloud by Nova's APIs and by its databases: both sources give one snapshot, but for its time.

Nova's own services make the servers in each state; what a fake of libvirt lacks is stored as Nova
stores it.
"""

import json
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import fixtures
import requests
from keystoneauth1.session import Session
from nova import context as nova_context
from nova import objects
from nova.api.openstack import common

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServers
from cpu_tiers.tools.database.server_status import server_status
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from tests.nova.command_line import services_of, streams
from tests.nova.planned import PlannedCloud
from tests.nova.stored_databases import copy_databases

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "etc" / "systemd" / "cpu-tiers-cloud-minute.service"
AVX2 = {"trait:COMPUTE_NODE": "required", "hw_disk_bus": "virtio", "os_distro": "debian"}
IMAGE = "0b1c2d3e-31e7-49b7-b260-868f441e862c"
AVX2 |= {"team": "web", "architecture": "x86_64"}


class Glance(Session):
    """Stands for Glance, of which Nova has only a fake without HTTP."""

    def __init__(self, glance: Any) -> None:
        super().__init__()
        self._glance = glance

    # The adapter gives all other arguments by name.
    def request(  # type: ignore[override]
        self, url: str, method: str, **_: Any
    ) -> requests.Response:
        assert method == "GET"
        images = [{"id": i["id"], **i["properties"]} for i in self._glance.images.values()]
        response = requests.Response()
        response.status_code = 200
        body = {"images": images if "os_hidden=false" in url else []}
        response._content = json.dumps(body).encode()
        return response


class TestBothSources(PlannedCloud):
    """Three hosts in two cells, and servers in each state that a test can make."""

    NUMBER_OF_CELLS = 2

    def setUp(self) -> None:
        super().setUp()
        self.flags(instances=100, cores=100, group="quota")
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)

    def snapshot(self, *arguments: str, conf: str = "") -> tuple[Snapshot, str]:
        path = self.folder / "cloud.json"
        argv = ["--config-file", conf or self.conf, "cloud", "snapshot", str(path), *arguments]
        services = services_of(self, Glance(self.glance))
        with (
            mock.patch.object(NovaConfCommand, "services", return_value=services) as asked,
            streams() as (out, error),
        ):
            code = app.main(argv)
        assert code == 0, out.getvalue() + error.getvalue()
        assert asked.called != ("--databases" in arguments)
        document = json.loads(path.read_text())
        assert document.pop("taken")
        return Snapshot.parse(document, where="snapshot"), error.getvalue()

    def databases(self) -> str:
        """Copy the databases; return the path of a nova.conf with their URLs."""
        path = self.folder / "databases.conf"
        path.write_text(Path(self.conf).read_text() + copy_databases(self.folder))
        return str(path)

    def servers(self, snapshot: Snapshot) -> SnapshotServers:
        assert snapshot.servers is not None
        return snapshot.servers

    def same(self) -> Snapshot:
        """Check that both sources give one snapshot, and return it."""
        by_api, _ = self.snapshot()
        by_databases, _ = self.snapshot("--databases", conf=self.databases())
        for name in SnapshotServers.__dataclass_fields__:
            assert getattr(by_databases.servers, name) == getattr(by_api.servers, name), name
        assert by_databases == by_api
        return by_databases

    def test_states(self) -> None:
        self.glance.create(
            nova_context.get_admin_context(),
            {"id": IMAGE, "name": "avx2", "properties": AVX2}
            | {"status": "active", "min_ram": 0, "min_disk": 0, "size": 1}
            | {"disk_format": "raw", "container_format": "bare", "visibility": "public"},
        )
        for host, cell in (("one", "cell1"), ("two", "cell1"), ("three", "cell2")):
            self.write_provider_yaml("$COMPUTE_NODE", {"CUSTOM_VCPU_SHARES": 800})
            self.start_compute(host, host_info=self.kind.hardware(), cell_name=cell)
        aggregate = self.api.post_aggregate(
            {"aggregate": {"name": "fast", "availability_zone": "az1"}}
        )["id"]
        self.act(aggregate, add_host={"host": "two"})
        self.act(aggregate, set_metadata={"metadata": {"ssd": "true"}})
        rules = {"name": "apart", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}}
        group = self.api.post_server_groups(rules)["id"]
        for name in ("plain", "off", "gone", "resets", "volume", "soft", "silent", "hidden"):
            self.boot_small(name, "one")
        self.boot_small("image", "one", image_uuid=IMAGE)
        self.boot_small("other cell", "three")
        self.boot_named("member", 3, "one", group)
        self.boot_named("member too", 3, "three", group)
        self.boot_named("member no more", 3, "one", group)
        body = self._build_server(name="pinned", flavor_id=self.small, networks="none", az="az1")
        hints = {"different_host": [self.uuids["plain"]]}
        pinned = self.api.post_server({"server": body, "os:scheduler_hints": hints})
        self._wait_for_state_change(pinned, "ACTIVE")
        for name in ("gone", "member no more"):
            self._delete_server({"id": self.uuids[name]})
        self.api.post_server_action(self.uuids["off"], {"os-stop": None})
        self._wait_for_state_change({"id": self.uuids["off"]}, "SHUTOFF")
        reason = {"lock": {"locked_reason": "mine, „all“ of it"}}
        self.api.post_server_action(self.uuids["plain"], reason)
        self.api.post_server_action(self.uuids["resets"], {"os-resetState": {"state": "error"}})
        self.change("volume", image_ref="")
        self.change("soft", vm_state="soft-delete")
        self.change("hidden", hidden=True)
        self.change("silent", task_state="rebuild_spawning")
        self.boot_named("resized", 3, "one")
        larger = {"resize": {"flavorRef": self.flavors[4]}}
        self.api.post_server_action(self.uuids["resized"], larger)
        self._wait_for_state_change({"id": self.uuids["resized"]}, "VERIFY_RESIZE")
        self.store_migrations()
        self.post_building()
        self.flavor("private", {"trait:HW_CPU_X86_AVX2": "required"}, vcpus=2)
        self.go_down("three")
        disabled = self.api.get_services(host="two", binary="nova-compute")[0]["id"]
        self.api.put_service(disabled, {"status": "disabled", "disabled_reason": "mine"})
        snapshot = self.same()
        servers = {server.name: server for server in self.servers(snapshot).servers.values()}
        assert {"gone", "soft", "hidden", "member no more"}.isdisjoint(servers)
        states = {name: server.state for name, server in servers.items()}
        assert (states["off"], states["resets"], states["silent"]) == (
            "SHUTOFF", "ERROR", "REBUILD",
        )  # fmt: skip
        assert (states["resized"], states["building"]) == ("VERIFY_RESIZE", "BUILD")
        assert servers["plain"].lock_reason == "mine, „all“ of it"
        assert servers["pinned"].zone == "az1"
        assert servers["pinned"].hints == {"different_host": (self.uuids["plain"],)}
        assert servers["volume"].is_from_volume
        assert servers["other cell"].host == "three"
        image = servers["image"].image
        assert image is not None
        # nova-compute adds the buses that it has chosen; nothing of Nova knows the team.
        assert image.properties.items() >= {(n, v) for n, v in AVX2.items() if n != "team"}
        assert "team" not in image.properties
        (stored,) = self.servers(snapshot).groups.values()
        assert (stored.most, stored.members) == (
            2,
            tuple(sorted(self.uuids[name] for name in ("member", "member too"))),
        )
        (fast,) = self.servers(snapshot).aggregates.values()
        assert (fast.zone, fast.hosts, fast.metadata["ssd"]) == ("az1", ("two",), "true")
        kinds = {each.status for each in self.servers(snapshot).migrations.values()}
        assert kinds == {"finished", "running", "done"}
        assert self.servers(snapshot).services[self.compute_rp_uuids["three"]] == "three"
        assert self.compute_rp_uuids["three"] in self.servers(snapshot).down
        assert {flavor.name for flavor in snapshot.flavors} >= {"private", "small", "gold-3"}
        assert not self.servers(snapshot).unread
        self.check_plans()
        self.check_cells(snapshot)

    def check_plans(self) -> None:
        """Check that plans by the databases are those by the snapshot of the same moment."""
        conf, snapshot = self.databases(), str(self.folder / "cloud.json")
        self.snapshot("--databases", conf=conf)
        for command in (
            ("drain", "one"),
            ("drain", "two", "--cold"),
            ("room", "private"),
            ("relieve",),
            ("survive",),
        ):
            plan = ["--config-file", conf, "plan", *command, "-f", "json"]
            (status, text), by_snapshot = (
                self.answer([*plan, *source])
                for source in (["--databases"], ["--snapshot", snapshot])
            )
            assert status in (0, 3), text
            assert json.loads(text)
            assert (status, text) == by_snapshot

    def answer(self, argv: list[str]) -> tuple[int, str]:
        """Return the exit status and the output of a command that asks no API."""
        with mock.patch.object(NovaConfCommand, "services") as asked, streams() as (out, error):
            status = app.main(argv)
        assert not asked.called
        return status, out.getvalue() or error.getvalue()

    def change(self, name: str, **values: Any) -> None:
        instance = self.stored(self.uuids[name])
        for key, value in values.items():
            setattr(instance, key, value)
        instance.save()

    def store_migrations(self) -> None:
        """Store migrations in progress, done, failed and hidden."""
        context = nova_context.get_admin_context()
        for status in ("running", "done", "error", "queued"):
            objects.Migration(
                context,
                instance_uuid=self.uuids["plain"],
                source_compute="one",
                source_node="one",
                dest_compute="two",
                dest_node="two",
                dest_compute_id=2,
                status=status,
                hidden=status == "queued",
                migration_type="live-migration",
            ).create()

    def post_building(self) -> None:
        """Have nova-api take a request that reaches no nova-conductor: it is in no cell yet."""
        body = self._build_server(
            name="building", flavor_id=self.small, networks="none", image_uuid=IMAGE
        )
        build = "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances"
        with mock.patch(build):
            self.api.post_server({"server": body})

    def test_the_unit_of_each_minute(self) -> None:
        """Run the command of the unit, with the unit's umask and nearly no environment."""
        self.write_provider_yaml("$COMPUTE_NODE", {"CUSTOM_VCPU_SHARES": 800})
        self.start_compute("one", host_info=self.kind.hardware(), cell_name="cell1")
        aggregate = self.api.post_aggregate({"aggregate": {"name": "fast"}})["id"]
        self.act(aggregate, add_host={"host": "one"})
        self.boot_small("plain", "one")
        text, conf = UNIT.read_text(), self.databases()
        lines = dict(re.findall(r"^(\w+)=(.+)$", text, re.MULTILINE))
        metrics = self.folder / "metrics"
        metrics.mkdir(mode=0o755)
        places = {
            "/usr/local/bin/cpu-tiers": str(Path(sys.executable).with_name("cpu-tiers")),
            "${CREDENTIALS_DIRECTORY}/cloud.conf": conf,
            "/var/lib/cpu-tiers/metrics/cpu-tiers-cloud.prom": str(metrics / "cloud.prom"),
        }
        command = [places.get(word, word) for word in lines["ExecStart"].split()]
        assert {*places.values()} <= {*command}
        before = time.time()
        ran = subprocess.run(
            command,
            umask=int(lines["UMask"], 8),
            cwd="/",
            env={"PYTHONPATH": str(ROOT), "HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
        (file,) = metrics.iterdir()
        assert file.stat().st_mode & 0o777 == 0o644
        values = dict(
            line.rsplit(" ", 1)
            for line in file.read_text().splitlines()
            if not line.startswith("#")
        )
        read_at = float(values['cpu_tiers_cloud_timestamp_seconds{cloud="RegionOne"}'])
        assert before <= read_at <= time.time()
        # The flavor has one vCPU with a multiplier of 10.
        for label in (
            'shares_{}{{cloud="RegionOne",host="one"}}',
            'group_shares_{}{{cloud="RegionOne",group="fast"}}',
        ):
            assert values["cpu_tiers_" + label.format("sold")] == "10"
            assert values["cpu_tiers_" + label.format("free")] == "790"

    def check_cells(self, whole: Snapshot) -> None:
        """Take the database of a cell away: its servers keep their ids and projects."""
        conf = self.databases()
        with sqlite3.connect(self.folder / "api") as rows:
            ((uuid, name),) = rows.execute(
                "SELECT uuid, name FROM cell_mappings WHERE id = (SELECT cell_id FROM"
                " host_mappings WHERE host = 'three')"
            )
        rows.close()
        (self.folder / uuid).unlink()
        (self.folder / uuid).mkdir()
        part, error = self.snapshot("--databases", conf=conf)
        assert (
            f"without a cell, and its servers are on no host: the database of cell {name}" in error
        )
        assert part.providers == whole.providers
        servers, before = self.servers(part), self.servers(whole)
        assert servers.servers.keys() == before.servers.keys()
        silent = {self.uuids[each] for each in ("other cell", "member too")}
        for server, stored in servers.servers.items():
            if server in silent:
                assert (stored.state, stored.host) == ("UNKNOWN", "")
                assert stored.project == before.servers[server].project
            else:
                assert stored == before.servers[server]
        assert self.compute_rp_uuids["three"] not in servers.services


def test_statuses_are_those_of_nova() -> None:
    tasks = {task for of in common._STATE_MAP.values() for task in of} - {"default"}
    for state in (*common._STATE_MAP, "nonsense", None):
        for task in (*tasks, "spawning", None):
            expected = common.status_from_state(state, task)
            assert server_status(state, task) == expected, (state, task)
