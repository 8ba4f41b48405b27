"""Run a nova-scheduler over 1,000 computes in this process, for measurements by another process.

Nova's SchedulerManager reads the computes from its own databases and queries a real Placement;
both use SQLite files, copies of the files that :func:`build` has filled. Each line on standard
input is a request for a server. The answer is the CPU time of the request in seconds, and
Placement's part of it; for the line ``count`` it is the calls of functions, the calls of cpu-tiers
among them, and the requests to Placement. ``benchmarks/select_destinations.py`` starts this
program.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import gc
import os
import shutil
import sqlite3
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    import requests
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session
    from keystoneauth1.token_endpoint import Token
    from nova import config, context, objects
    from nova.conf import CONF
    from nova.db import migration
    from nova.scheduler import manager
    from nova.scheduler.client import report
    from placement import db_api

    from cpu_tiers.model.names import MULTIPLIER_TRAIT
    from cpu_tiers.tools.placement.embedded import WsgiTransport, placement_app

SHARES = "CUSTOM_VCPU_SHARES"
INVENTORIES = {"VCPU": 128, "MEMORY_MB": 262_144, "DISK_GB": 4_000, SHARES: 12_800}
STOCK = "nova.scheduler.weights.all_weighers"
OURS = "cpu_tiers.ResourceProviderWeigher"
MULTIPLIER = {"quota:cpu_shares_multiplier": "100"}

RECORDS = "decision_record_file = {folder}/decisions"
OPTIONS = {
    "decision_record_file": RECORDS,
    **{
        name: f"{name} = true"
        for name in (
            "query_placement_for_numa",
            "query_placement_for_port_traits",
            "require_host_traits",
            "give_back_oversold_claims",
            "name_lacking_constraints",
        )
    },
    "extend_cpu_policies": "[compute]\nextend_cpu_policies = true",
}
"""The options of nova-scheduler beside shares and scores, each with its lines of nova.conf."""


class Way(NamedTuple):
    """A variant of nova-scheduler.

    :param options: lines at the end of nova.conf, which begin in ``[filter_scheduler]``.
    """

    weighers: tuple[str, ...]
    extra_specs: dict[str, str]
    options: str = ""


WAYS = {
    "off": Way((STOCK,), MULTIPLIER),
    "asks": Way((STOCK,), {**MULTIPLIER, f"resources:{SHARES}": "400"}),
    "on": Way((STOCK, OURS), MULTIPLIER),
    "recorded": Way((STOCK, OURS), MULTIPLIER, RECORDS),
    "everything": Way((STOCK, OURS), MULTIPLIER, "\n".join(OPTIONS.values())),
    "off again": Way((STOCK,), MULTIPLIER),
    **{name: Way((STOCK, OURS), MULTIPLIER, lines) for name, lines in OPTIONS.items()},
}
"""Without us; without us, but asking for what we ask; shares and scores; with a record of each
decision; with all options; without us again; with each option alone."""

_URL = "http://placement.bench"

OUR_CODE = f"{os.sep}cpu_tiers{os.sep}"
"""In the path of a file of cpu-tiers; Placement's part is not counted."""


NOVA_CONF = """
[DEFAULT]
transport_url = fake:/
service_down_time = 86400
[database]
connection = sqlite:///{folder}/cell.sqlite
sqlite_synchronous = false
[api_database]
connection = sqlite:///{folder}/api.sqlite
sqlite_synchronous = false
[filter_scheduler]
weight_classes = {weighers}
query_placement_for_vcpu_shares = true
resource_provider_weight_multiplier = 1.0
resource_provider_scoring = boring
"""
"""Nova does not know the last three unless our weigher is loaded."""


def configure(folder: Path, way: str) -> context.RequestContext:
    """Start like a service of Nova; return the context of an administrator."""
    nova_conf, (weighers, _, options) = folder / "nova.conf", WAYS[way]
    text = (NOVA_CONF + options).format(folder=folder, weighers=",".join(weighers))
    nova_conf.write_text(text)
    config.parse_args(["bench"], default_config_files=[str(nova_conf)])
    objects.register_all()
    admin = context.get_admin_context()
    admin.project_id = admin.user_id = str(uuid.uuid4())
    return admin


def add_cell(admin: context.RequestContext) -> objects.CellMapping:
    """Put the cell into Nova's API database."""
    cell = objects.CellMapping(
        admin,
        uuid=str(uuid.uuid4()),
        name="cell1",
        transport_url=CONF.transport_url,
        database_connection=CONF.database.connection,
    )
    cell.create()
    return cell


def _add_compute(targeted: context.RequestContext, host: str) -> str:
    objects.Service(
        targeted, host=host, binary="nova-compute", topic="compute", report_count=0
    ).create()
    node = objects.ComputeNode(
        targeted,
        uuid=str(uuid.uuid4()),
        host=host,
        hypervisor_hostname=host,
        hypervisor_type="QEMU",
        hypervisor_version=9_000_000,
        host_ip="192.0.2.1",
        cpu_info="{}",
        vcpus=128,
        vcpus_used=0,
        memory_mb=262_144,
        memory_mb_used=512,
        free_ram_mb=261_632,
        local_gb=4_000,
        local_gb_used=0,
        free_disk_gb=4_000,
        disk_available_least=4_000,
        running_vms=0,
        current_workload=0,
        cpu_allocation_ratio=1.0,
        ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0,
        supported_hv_specs=[],
        mapped=1,
    )
    node.create()
    return str(node.uuid)


def add_providers(placement: Adapter, uuids: list[str]) -> None:
    """Give Placement the providers; each has the traits of a recent x86 compute node."""
    traits = [f"CUSTOM_FEATURE_{index:02}" for index in range(60)]
    for name in traits:
        _put(placement, f"/traits/{name}", None)
    _put(placement, f"/resource_classes/{SHARES}", None)
    traits.append("OWNER_NOVA")  # which Nova requires since release 34
    _put(placement, f"/traits/{MULTIPLIER_TRAIT}", None)
    traits.append(MULTIPLIER_TRAIT)  # of a host that knows quota:cpu_shares_multiplier
    for one in uuids:
        made = placement.post("/resource_providers", json={"uuid": one, "name": one})
        assert made.ok, made.text
        url = f"/resource_providers/{one}"
        inventories = {name: {"total": total} for name, total in INVENTORIES.items()}
        _put(
            placement,
            f"{url}/inventories",
            {"inventories": inventories, "resource_provider_generation": 0},
        )
        _put(placement, f"{url}/traits", {"traits": traits, "resource_provider_generation": 1})


def _put(placement: Adapter, url: str, body: object) -> None:
    response = placement.put(url, json=body)
    assert response.ok, f"{url}: {response.text}"


def request_spec(admin: context.RequestContext, specs: dict[str, str]) -> objects.RequestSpec:
    """Return a request for one server of 4 vCPUs."""
    flavor = objects.Flavor(
        id=1,
        flavorid="gold",
        name="gold",
        vcpus=4,
        memory_mb=8192,
        root_gb=20,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(specs),
    )
    spec = objects.RequestSpec.from_components(
        admin,
        str(uuid.uuid4()),
        objects.ImageMeta(id=str(uuid.uuid4()), properties=objects.ImageMetaProps()),
        flavor,
        None,
        None,
        {},
        None,
        None,
    )
    spec.is_bfv = False
    return spec


class TimedTransport(WsgiTransport):
    """A transport that counts requests, and adds up the CPU seconds of Placement."""

    seconds = 0.0
    sent = 0

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Return the response of the application; its calls are not counted."""
        counting = sys.getprofile()
        sys.setprofile(None)
        start = time.process_time()
        response = super().send(*args, **kwargs)
        self.seconds += time.process_time() - start
        self.sent += 1
        sys.setprofile(counting)
        return response


class Calls:
    """Counts the calls of functions, also of those in C, of all code and of cpu-tiers."""

    def __init__(self) -> None:
        self.all = self.ours = 0

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        """Count an event of the interpreter; a call of C counts for the code that calls."""
        if event in {"call", "c_call"}:
            self.all += 1
            self.ours += OUR_CODE in frame.f_code.co_filename


class Scheduler(NamedTuple):
    """A scheduler, the context of an administrator, and the transport to Placement."""

    manager: manager.SchedulerManager
    admin: context.RequestContext
    placement: TimedTransport


@contextmanager
def placement() -> Iterator[tuple[TimedTransport, Adapter]]:
    """Yield the transport to a Placement in this process, and Nova's adapter."""
    with placement_app() as app, requests.Session() as http:
        transport = TimedTransport(app)
        http.mount(_URL, transport)
        yield (
            transport,
            Adapter(
                Session(auth=Token(_URL, "admin"), session=http),
                service_type="placement",
                default_microversion="1.36",
                raise_exc=False,
            ),
        )


def _placement_file() -> str:
    """Return the SQLite file of the Placement in this process."""
    engine = db_api.placement_context_manager.writer.get_engine()
    return str(engine.url.database)


def _copy(source: str | Path, target: str | Path) -> None:
    """Copy an SQLite database, also into a database that is open."""
    with closing(sqlite3.connect(source)) as full, closing(sqlite3.connect(target)) as empty:
        full.backup(empty)


def build(folder: Path, hosts: int) -> None:
    """Make the databases of one cell and of Placement, which all schedulers copy."""
    admin = configure(folder, "off")
    migration.db_sync(database="api")
    migration.db_sync(database="main")
    with context.target_cell(admin, add_cell(admin)) as targeted:
        uuids = [_add_compute(targeted, f"compute{index}") for index in range(hosts)]
    with placement() as (_, adapter):
        add_providers(adapter, uuids)
        _copy(_placement_file(), folder / "placement.sqlite")


@contextmanager
def scheduler(way: str, databases: Path) -> Iterator[Scheduler]:
    """Yield a scheduler with the settings of ``way``, and with copies of the databases."""
    with TemporaryDirectory() as name, placement() as (transport, adapter):
        folder = Path(name)
        for file in ("api.sqlite", "cell.sqlite"):
            shutil.copy(databases / file, folder)
        _copy(databases / "placement.sqlite", _placement_file())
        admin = configure(folder, way)
        (cell,) = objects.CellMappingList.get_all(admin)
        cell.database_connection = CONF.database.connection  # this copy of the cell
        cell.save()
        report.PLACEMENTCLIENT = report.SchedulerReportClient(adapter)
        yield Scheduler(manager.SchedulerManager(), admin, transport)


def schedule(scheduling: Scheduler, specs: dict[str, str]) -> tuple[float, float]:
    """Return the CPU seconds of a request, and those of Placement among them.

    The claimed allocations are deleted afterwards.
    """
    novas, admin, placement = scheduling
    spec = request_spec(admin, specs)
    server = spec.instance_uuid
    gc.collect()
    start, of_placement = time.process_time(), placement.seconds
    (selections,) = novas.select_destinations(
        admin, spec_obj=spec, instance_uuids=[server], return_objects=True, return_alternates=True
    )
    took = time.process_time() - start, placement.seconds - of_placement
    asked = selections[0].allocation_request
    assert (SHARES in asked) == (
        specs != MULTIPLIER or OURS in CONF.filter_scheduler.weight_classes
    )
    novas.placement_client.delete_allocation_for_instance(admin, server, force=True)
    return took


def count(scheduling: Scheduler, specs: dict[str, str]) -> tuple[int, int, int]:
    """Return the calls of a request, those of cpu-tiers, and the requests to Placement."""
    calls, before = Calls(), scheduling.placement.sent
    sys.setprofile(calls)
    try:
        schedule(scheduling, specs)
    finally:
        sys.setprofile(None)
    return calls.all, calls.ours, scheduling.placement.sent - before


def serve(way: str, databases: Path) -> None:
    """Answer each line of standard input with the CPU seconds, or the calls, of a request."""
    with scheduler(way, databases) as scheduling:
        print("ready", flush=True)
        for line in sys.stdin:
            answer = count if line.strip() == "count" else schedule
            print(*answer(scheduling, WAYS[way].extra_specs), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        serve(sys.argv[1], Path(sys.argv[2]))
