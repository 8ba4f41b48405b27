"""Read a large cloud live, and ask for candidates beside it, as a boot does.

The cloud of ``large_cloud.py``, with 60 more traits of each host, is in a Placement of several
processes over MariaDB and PostgreSQL. ``cpu-tiers cloud snapshot`` reads it with 1 and with more
requests at the same time. The requests are the goal; on a machine of few processors, the seconds
say little: Placement, the database and the reader share the processors. So the CPU time of each is
printed, too. Run: ``python benchmarks/live_cloud.py [--hosts N] [--jobs N…] [--database NAME]``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import os_traits
import requests
import sqlalchemy
from large_cloud import large_cloud
from measure import Ratio, report

from tests.databases.servers import SERVERS, placement

GOAL = 2.15
"""Requests for each provider: two, a third for one of five, and the lists."""

WORKERS = 4
NODES = 2
HOST_TRAITS = 60
PART = 5_000
"""So many rows are written at the same time."""

HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
BOOT = "/allocation_candidates?resources=DISK_GB:20&resources_N=VCPU:2,CUSTOM_VCPU_SHARES:200"
BOOT += "&resources_M=MEMORY_MB:4096&group_policy=none&limit=1000"
PAUSE = 1.0
"""Seconds between two boots."""

READER = """
import resource, sys
from cpu_tiers.tools.frame import app
from cpu_tiers.tools.placement.exchange import Exchange
from itertools import count
numbers, send = count(), Exchange._send
Exchange._send = lambda self, *a: (next(numbers), send(self, *a))[1]
status = app.main()
own = resource.getrusage(resource.RUSAGE_SELF)
print(next(numbers), own.ru_utime + own.ru_stime, own.ru_maxrss / 1024)
sys.exit(status)
"""


def fill(url: str, document: Mapping[str, Any]) -> None:
    """Write the cloud of a snapshot into the database of a Placement: its API takes an hour."""
    engine, tables = sqlalchemy.create_engine(url), sqlalchemy.MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        numbers = {
            row.name: row.id
            for table in ("traits", "resource_classes")
            for row in connection.execute(tables.tables[table].select())
        }
        for table, rows in _rows(document, numbers):
            for start in range(0, len(rows), PART):
                connection.execute(tables.tables[table].insert(), rows[start : start + PART])
    engine.dispose()


def name(address: str, document: Mapping[str, Any]) -> None:
    """Have Placement create the custom names of a cloud."""
    for kind, key in (("traits", "traits"), ("resource_classes", "inventories")):
        for each in sorted({n for provider in document["providers"] for n in provider[key]}):
            if each.startswith("CUSTOM_"):
                url = f"{address}/{kind}/{each}"
                requests.put(url, headers=HEADERS, timeout=300).raise_for_status()


NOW = datetime.now(UTC).replace(tzinfo=None)
Rows = list[dict[str, Any]]


def _rows(document: Mapping[str, Any], numbers: Mapping[str, int]) -> Iterator[tuple[str, Rows]]:
    providers = document["providers"]
    ids = {each["uuid"]: number for number, each in enumerate(providers, start=1)}
    roots: dict[str, int] = {}
    for each in providers:  # each after its parent
        roots[each["uuid"]] = roots.get(each["parent_uuid"], ids[each["uuid"]])
    yield (
        "resource_providers",
        [
            {"id": ids[each["uuid"]], "uuid": each["uuid"], "name": each["name"]}
            | {"generation": 1, "created_at": NOW, "root_provider_id": roots[each["uuid"]]}
            | {"parent_provider_id": ids.get(each["parent_uuid"])}
            for each in providers
        ],
    )
    yield (
        "inventories",
        [
            {"resource_provider_id": ids[each["uuid"]], "resource_class_id": numbers[name]}
            | {"created_at": NOW, **inventory}
            for each in providers
            for name, inventory in each["inventories"].items()
        ],
    )
    yield (
        "resource_provider_traits",
        [
            {"resource_provider_id": ids[each["uuid"]], "trait_id": numbers[name]}
            | {"created_at": NOW}
            for each in providers
            for name in each["traits"]
        ],
    )
    yield "projects", [{"id": 1, "external_id": "project", "created_at": NOW}]
    yield "users", [{"id": 1, "external_id": "user", "created_at": NOW}]
    consumers = document["consumers"]
    yield (
        "consumers",
        [
            {"uuid": uuid, "project_id": 1, "user_id": 1, "generation": 1, "created_at": NOW}
            for uuid in consumers
        ],
    )
    yield (
        "allocations",
        [
            {"resource_provider_id": ids[provider], "resource_class_id": numbers[name]}
            | {"consumer_id": uuid, "used": amount, "created_at": NOW}
            for uuid, held in consumers.items()
            for provider, amounts in held.items()
            for name, amount in amounts.items()
        ],
    )


class Boots:
    """Asks for candidates again and again, as boots do."""

    def __init__(self, url: str) -> None:
        self._url = url

    def seconds(self) -> float:
        """Return the seconds of one query."""
        start = time.perf_counter()
        requests.get(self._url + BOOT, headers=HEADERS, timeout=300).raise_for_status()
        return time.perf_counter() - start

    @contextmanager
    def beside(self) -> Iterator[list[float]]:
        """Yield the seconds of the boots until the end of the context."""
        taken: list[float] = []
        end = threading.Event()

        def ask() -> None:
            while not end.wait(PAUSE):
                taken.append(self.seconds())

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield taken
        finally:
            end.set()
            thread.join()


def _cpu_seconds(*programs: str) -> float:
    """Return the CPU seconds so far of all processes below this process with these names."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name.startswith(programs):
            fields = rest.split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(database: str, hosts: int, jobs: Sequence[int], folder: Path) -> Iterator[Ratio]:
    """Print a line for each number of jobs; yield the requests for each provider."""
    document = large_cloud(hosts, NODES)
    common = [n for n in sorted(os_traits.get_traits()) if n.startswith("HW_CPU_X86_")]
    for each in document["providers"]:
        if each["parent_uuid"] is None:
            each["traits"] += common[:HOST_TRAITS]
    with SERVERS[database](folder, "placement") as url:
        with placement(folder, url, workers=1) as address:
            name(address, document)
        fill(url, document)
        with placement(folder, url, workers=WORKERS) as address:
            yield from _read(address, database, len(document["providers"]), jobs, folder)


def _read(
    address: str, database: str, providers: int, jobs: Sequence[int], folder: Path
) -> Iterator[Ratio]:
    conf = folder / "nova.conf"
    conf.write_text(f"[placement]\nauth_type = admin_token\ntoken = admin\nendpoint = {address}\n")
    boots, file = Boots(address), folder / "cloud.json"
    alone = statistics.median([boots.seconds() for _ in range(7)][2:])
    print(f"  {database}, {providers} providers; a boot alone takes {alone:.2f} s")
    for number in jobs:
        command = [sys.executable, "-c", READER, "--config-file", str(conf), "cloud", "snapshot"]
        command += [str(file), "--no-flavors", f"--jobs={number}"]
        before, start = _cpu_seconds("gunicorn"), time.perf_counter()
        stored = _cpu_seconds("mariadbd", "postgres")
        with boots.beside() as taken:
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        seconds = time.perf_counter() - start
        sent, cpu, megabytes = map(float, said.split()[-3:])
        boot = statistics.median(taken) if taken else float("nan")
        print(
            f"    --jobs {number:2}{seconds:8.1f} s, reader {cpu:.1f} CPU s, {megabytes:.0f} MB,"
            f" Placement {_cpu_seconds('gunicorn') - before:.1f} CPU s, database"
            f" {_cpu_seconds('mariadbd', 'postgres') - stored:.1f} CPU s,"
            f" a boot beside it {boot / alone:.1f} times as long",
            flush=True,
        )
        written = json.loads(file.read_text())
        assert len(written["providers"]) == providers, len(written["providers"])
        detail = f"{sent:.0f} requests for {providers} providers"
        yield Ratio(
            what=f"{database}, --jobs {number}: requests / provider",
            ratio=sent / providers,
            goal=GOAL,
            detail=detail,
        )


def main() -> int:
    """Measure; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--database", choices=SERVERS, nargs="*", default=list(SERVERS))
    given = parser.parse_args()
    ratios: list[Ratio] = []
    for database in given.database:
        with tempfile.TemporaryDirectory(prefix="cpu-tiers-") as folder:
            ratios += measure(database, given.hosts, given.jobs, Path(folder))
    return report("Reading a cloud live", ratios)


if __name__ == "__main__":
    sys.exit(main())
