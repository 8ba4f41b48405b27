"""CPU seconds and memory of a snapshot of 10,000 hosts from MariaDB, and those of the database.

The cloud of ``large_cloud.py``, with 60 more traits of each host, is in tables of Placement's
migrations, and 300,000 servers in two cells in tables of Nova's migrations; each server
has the texts of a flavor and of a request, and the rows of an image, as Nova stores them. The
metrics are those of ``cpu-tiers-cloud-minute.service``, without and with Nova's databases. Each
command is a process of its own, whose start counts. A short draw takes a tenth, whose goals are a
tenth beside what an empty cloud takes. Run: ``python benchmarks/databases.py [--hosts N]
[--servers N] [--database NAME]``; ``--servers`` is a number for each host, and 0 leaves Nova out.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import os_resource_classes
import os_traits
import sqlalchemy as sa
from large_cloud import large_cloud
from live_cloud import HOST_TRAITS, NODES, PART, fill
from measure import DRAW, Ratio, report
from nova.db import migration
from snapshot_answers import taken

from cpu_tiers.model.names import VCPU_SHARES
from tests.databases.servers import SERVERS, tables_of_placement

HOSTS = 1_000 if DRAW else 10_000
OF_GOALS = 10_000
"""The goals are about so many hosts, with 30 servers each."""

SERVERS_OF_HOST = 30
GOALS = {
    "providers": (6.0, 500.0, 0.5),
    "metrics of providers": (10.0, 500.0, None),
    "providers and servers": (40.0, 1500.0, None),
    "metrics": (10.0, 500.0, None),
}
METRICS = ("--metrics-only", "--tier", "gold=100", "--tier", "silver=50", "--prometheus")
ROUNDS = 3
UNITS = ("CPU s", "MB", "CPU s of the database")
"""What the goals for 10,000 hosts are about."""

NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
CELLS = {"nova_cell0": "00000000-0000-0000-0000-000000000000"}
CELLS |= {f"nova_cell{n}": f"{n * 11111111}-0000-4000-8000-000000000000" for n in (1, 2)}
IMAGE = {
    "image_base_image_ref": "155d900f-4e14-4e4c-a73d-069cbf4541e6", "image_min_ram": "0",
    "image_min_disk": "20", "image_disk_format": "qcow2", "image_container_format": "bare",
    "image_hw_disk_bus": "virtio", "image_hw_machine_type": "q35", "image_os_distro": "debian",
    "image_hw_cdrom_bus": "sata", "boot_roles": "member,reader", "owner_user_name": "user",
    "owner_project_name": "project",
}  # fmt: skip


def stored(kind: str, **data: Any) -> dict[str, Any]:
    """Return an object of Nova as its databases have it."""
    start = {"nova_object.name": kind, "nova_object.namespace": "nova"}
    return {**start, "nova_object.version": "1.2", "nova_object.data": data}


def stored_flavor(flavor: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the embedded flavor of a server."""
    sizes = {name: flavor[name] for name in ("vcpus", "memory_mb", "root_gb")}
    more: dict[str, Any] = {
        "ephemeral_gb": 0,
        "swap": 0,
        "rxtx_factor": 1.0,
        "vcpu_weight": 0,
        "disabled": False,
    }
    more |= {"is_public": True, "created_at": f"{NOW}Z", "updated_at": None, "deleted": False}
    names = {"id": number, "name": flavor["name"], "flavorid": str(number)}
    return stored("Flavor", **names, **sizes, **more, extra_specs=flavor["extra_specs"])


class Nova:
    """Nova's databases on a MariaDB, each with the tables of Nova's migrations.

    :param url: the URL of Placement's database on the same server.
    """

    def __init__(self, url: str) -> None:
        self._server = sa.make_url(url)
        self.engines = {name: self._migrated(name) for name in ("nova_api", *CELLS)}

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return self._server.set(database=name).render_as_string(hide_password=False)

    def _migrated(self, name: str) -> sa.Engine:
        server = sa.create_engine(self._server)
        with server.begin() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb3"))
        server.dispose()
        engine = sa.create_engine(self.url(name))
        kind = "api" if name == "nova_api" else "main"
        config = migration._find_alembic_conf(kind)
        migration._upgrade_alembic(engine, config, None)
        return engine

    def run(self, name: str, statement: str, *rows: Mapping[str, Any]) -> None:
        """Run a statement, once for each row if there are any."""
        with self.engines[name].begin() as connection:
            for start in range(0, len(rows) or 1, PART):
                connection.execute(sa.text(statement), list(rows[start : start + PART]) or None)

    def fill(self, document: Mapping[str, Any], hosts: int, servers_of_host: int) -> None:
        """Write the hosts, the servers that are consumers, and others without allocations."""
        names = {each["uuid"]: each["name"] for each in document["providers"]}
        roots = [each for each in document["providers"] if each["parent_uuid"] is None]
        self.run(
            "nova_api",
            "INSERT INTO cell_mappings (uuid, name, transport_url, database_connection, disabled)"
            " VALUES (:uuid, :name, 'none:///', :url, 0)",
            *({"uuid": u, "name": name, "url": self.url(name)} for name, u in CELLS.items()),
        )
        for number, flavor in enumerate(document["flavors"], start=1):
            self._flavor(number, flavor)
        for cell, name in enumerate(list(CELLS)[1:]):
            own = {each["name"] for each in roots[cell::2]}
            self._hosts(name, cell + 2, [each for each in roots if each["name"] in own])
            consumers = (
                (uuid, names[next(iter(held))].partition("_")[0])
                for uuid, held in document["consumers"].items()
            )
            servers = [(uuid, host) for uuid, host in consumers if host in own]
            self._servers(name, servers, cell, hosts, servers_of_host)
            self._texts(name, document["flavors"])

    def _flavor(self, number: int, flavor: Mapping[str, Any]) -> None:
        self.run(
            "nova_api",
            "INSERT INTO flavors (id, name, memory_mb, vcpus, root_gb, ephemeral_gb, flavorid,"
            " swap, disabled, is_public) VALUES (:id, :name, :memory_mb, :vcpus, :root_gb, 0, :id,"
            " 0, 0, 1)",
            {"id": number, **flavor},
        )
        self.run(
            "nova_api",
            "INSERT INTO flavor_extra_specs (flavor_id, `key`, value) VALUES (:id, :key, :value)",
            *({"id": number, "key": k, "value": v} for k, v in flavor["extra_specs"].items()),
        )

    def _hosts(self, name: str, cell: int, roots: list[Mapping[str, Any]]) -> None:
        rows = [{"host": each["name"], "uuid": each["uuid"], "cell": cell} for each in roots]
        mapping = "INSERT INTO host_mappings (host, cell_id) VALUES (:host, :cell)"
        self.run("nova_api", mapping, *rows)
        self.run(
            name,
            "INSERT INTO services (host, `binary`, topic, report_count, disabled, forced_down,"
            " last_seen_up, deleted) VALUES (:host, 'nova-compute', 'compute', 1, 0, 0,"
            " UTC_TIMESTAMP(), 0)",
            *rows,
        )
        self.run(
            name,
            "INSERT INTO compute_nodes (uuid, host, hypervisor_hostname, vcpus, memory_mb,"
            " local_gb, vcpus_used, memory_mb_used, local_gb_used, hypervisor_type,"
            " hypervisor_version, cpu_info, deleted) VALUES (:uuid, :host, :host, 64, 131072,"
            " 4000, 0, 0, 0, 'QEMU', 1, '{}', 0)",
            *rows,
        )

    def _servers(
        self,
        name: str,
        servers: list[tuple[str, str]],
        cell: int,
        hosts: int,
        servers_of_host: int,
    ) -> None:
        insert = (
            "INSERT INTO instances (uuid, display_name, project_id, user_id, host, node, vm_state,"
            " image_ref, deleted, instance_type_id)"
        )
        rows = ({"uuid": uuid, "host": host, "n": n} for n, (uuid, host) in enumerate(servers))
        self.run(
            name,
            f"{insert} VALUES (:uuid, CONCAT('server-', :n), MD5(:n MOD 500), 'u', :host, :host,"
            f" 'active', '{IMAGE['image_base_image_ref']}', 0, 1 + :n MOD 9)",
            *rows,
        )
        others = hosts * servers_of_host // 2 - len(servers)
        host = f"CONCAT('host-', LPAD(2 * (seq MOD {hosts // 2}) + {cell}, 5, '0'))"
        self.run(
            name,
            f"{insert} SELECT UUID(), CONCAT('other-', seq), MD5(seq MOD 500), 'u', {host},"  # noqa: S608
            f" {host}, 'stopped', '{IMAGE['image_base_image_ref']}', 0, 1 + seq MOD 9"
            f" FROM seq_1_to_{others}",
        )

    def _texts(self, name: str, flavors: list[Mapping[str, Any]]) -> None:
        for number, flavor in enumerate(flavors, start=1):
            embedded = stored_flavor(flavor, number)
            self.run(
                name,
                "INSERT INTO instance_extra (instance_uuid, flavor, deleted)"
                " SELECT uuid, :text, 0 FROM instances WHERE instance_type_id = :number",
                {
                    "text": json.dumps({"cur": embedded, "old": None, "new": None}),
                    "number": number,
                },
            )
            image = stored("ImageMeta", properties=stored("ImageMetaProps", **IMAGE))
            request = stored(
                "RequestSpec",
                flavor=embedded,
                image=image,
                availability_zone=None,
                scheduler_hints={},
                numa_topology=None,
                instance_group=None,
                limits=stored("SchedulerLimits", numa_topology=None, vcpu=None, disk_gb=None),
                security_groups=stored("SecurityGroupList", objects=[]),
                project_id="p",
                user_id="u",
                num_instances=1,
            )
            self.run(
                name,
                "INSERT INTO nova_api.request_specs (instance_uuid, spec)"
                " SELECT uuid, :text FROM instances WHERE instance_type_id = :number",
                {"text": json.dumps(request), "number": number},
            )
        self.run(
            name,
            "INSERT INTO instance_system_metadata (instance_uuid, `key`, value, deleted)"
            " SELECT uuid, :key, :value, 0 FROM instances",
            *({"key": key, "value": value} for key, value in IMAGE.items()),
        )


def cpu_seconds(program: str) -> float:
    """Return the CPU seconds so far of the processes with a name that this process has started."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        if name == program and int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def best(program: str, *command: str) -> tuple[float, ...]:
    """Return the least CPU seconds, megabytes and CPU seconds of a database that a command takes.

    The database goes on with what was written before, so the first round has more than a reading.
    """
    costs = []
    for _ in range(ROUNDS):
        before = cpu_seconds(program)
        costs.append((*taken(*command), cpu_seconds(program) - before))
    return tuple(min(values) for values in zip(*costs, strict=True))


def written_cloud(hosts: int) -> dict[str, Any]:
    """Return the document of the cloud, with the traits of CPUs."""
    document = large_cloud(hosts, NODES)
    common = [n for n in sorted(os_traits.get_traits()) if n.startswith("HW_CPU_X86_")]
    for each in document["providers"]:
        if each["parent_uuid"] is None:
            each["traits"] += common[:HOST_TRAITS]
    return document


def fill_names(url: str, document: Mapping[str, Any]) -> None:
    """Write the names of traits and resource classes, as Placement does at its start."""
    engine = sa.create_engine(url)
    used = {
        "traits": {
            *os_traits.get_traits(),
            *(n for p in document["providers"] for n in p["traits"]),
        },
        "resource_classes": {
            *os_resource_classes.STANDARDS,
            *(n for p in document["providers"] for n in p["inventories"]),
        },
    }
    with engine.begin() as connection:
        for table, names in used.items():
            insert = sa.insert(sa.table(table, sa.column("name")))
            connection.execute(insert, [{"name": each} for each in sorted(names)])
    engine.dispose()


def measure(database: str, hosts: int, servers: int, folder: Path) -> Iterator[Ratio]:
    """Yield what each reading takes of its goals."""
    document, program = written_cloud(hosts), {"mariadb": "mariadbd", "postgresql": "postgres"}
    with SERVERS[database](folder, "placement") as url:
        tables_of_placement(folder, url)
        fill_names(url, document)
        conf, file = folder / "cloud.conf", folder / "cloud.json"
        command = ("--config-file", str(conf), "cloud")
        snapshot = (*command, "snapshot", str(file), "--databases")
        metrics = (*command, "show", "--databases", *METRICS, str(folder / "cloud.prom"))
        conf.write_text(f"[placement_database]\nconnection = {url}\n")
        cost_of = partial(best, program[database])
        readings = {"providers": (*snapshot, "--no-flavors"), "metrics of providers": metrics}
        empty = {reading[3]: cost_of(*reading) for reading in readings.values()}
        fill(url, document)
        if database == "mariadb" and servers:
            readings |= {"providers and servers": snapshot, "metrics": metrics}
        for what, reading in readings.items():
            if what == "providers and servers":
                nova = Nova(url)
                nova.fill(document, hosts, servers)
                with conf.open("a") as lines:
                    lines.write(f"[api_database]\nconnection = {nova.url('nova_api')}\n")
                    lines.write("[DEFAULT]\nservice_down_time = 86400\n")
            cost = cost_of(*reading)
            if reading is metrics:
                check_metrics((folder / "cloud.prom").read_text(), document, hosts)
            else:
                number = hosts * servers * (reading is snapshot)
                check(json.loads(file.read_text()), document, hosts, number)
            bases = empty[reading[3]]
            for value, base, goal, unit in zip(cost, bases, GOALS[what], UNITS, strict=True):
                allowed = base + ((goal or 0.0) - base) * hosts / OF_GOALS
                is_noise = DRAW and unit == UNITS[2]  # five ticks of a clock
                yield Ratio(
                    what=f"{database}, {what}: {unit}",
                    ratio=value / allowed if goal else value,
                    goal=None if is_noise else goal and 1.0,
                    detail=f"{value:.2f} of {allowed:.2f}" if goal else "",
                )


def check(
    snapshot: Mapping[str, Any], document: Mapping[str, Any], hosts: int, servers: int
) -> None:
    """Check that a snapshot has the cloud that was written."""
    read, written = (
        {p["uuid"]: {**p, "traits": sorted(p["traits"])} for p in each["providers"]}
        for each in (snapshot, document)
    )
    assert read == written
    assert snapshot["consumers"] == document["consumers"]
    if servers:
        assert len(snapshot["servers"]) == servers
        assert len(snapshot["services"]) == 2 * hosts
        assert snapshot["down"] == []
        assert {each["name"] for each in snapshot["server_flavors"]} == {
            each["name"] for each in document["flavors"]
        }


def check_metrics(text: str, document: Mapping[str, Any], hosts: int) -> None:
    """Check that the metrics have all hosts, and add up to the shares that were written."""
    sold = sum(
        amounts.get(VCPU_SHARES, 0)
        for held in document["consumers"].values()
        for amounts in held.values()
    )
    values = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    assert sum(int(value) for name, _, value in values if "shares_sold{" in name) == sold
    assert ('cpu_tiers_cloud_hosts{state="enabled"}', " ", str(hosts)) in values


def main() -> int:
    """Measure; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    parser.add_argument("--servers", type=int, default=SERVERS_OF_HOST)
    parser.add_argument("--database", choices=SERVERS, nargs="*", default=["mariadb"])
    given = parser.parse_args()
    ratios: list[Ratio] = []
    for database in given.database:
        with tempfile.TemporaryDirectory(prefix="cpu-tiers-") as folder:
            ratios += measure(database, given.hosts, given.servers, Path(folder))
    return report("Reading the databases", ratios)


if __name__ == "__main__":
    sys.exit(main())
