"""The flows whose lines ``lines_entered.py`` counts.

Live commands ask a real Placement inside the process, beside which there is no Nova: the session
with Keystone is left out. The audited host is a folder with files of /proc and /sys, and a
stand-in for libvirt-python describes its guests.
"""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.frame.app import main as run_command
from cpu_tiers.tools.placement import session
from cpu_tiers.tools.placement.embedded import embedded_placement

sys.path.append(str(Path(__file__).parents[1]))  # after the installed cpu_tiers
from tests.functional.cli.planned_clouds import cloud as planned_cloud
from tests.unit.cgroup.layouts import Layout

FLAVOR = {
    "name": "gold",
    "vcpus": 4,
    "ram": 8192,
    "disk": 20,
    "properties": {
        "quota:cpu_shares_multiplier": "100",
        "trait:HW_CPU_X86_AVX2": "required",
        "hw:numa_nodes": "1",
    },
}
CONF = """
[compute]
enable_numa_reporting_to_placement = true
cpu_shared_set = 0-5
cpu_dedicated_set = 6-7
[libvirt]
report_vcpu_shares = true
[filter_scheduler]
query_placement_for_vcpu_shares = true
query_placement_for_numa = true
"""


def prepared_query() -> Callable[[], object]:
    """Return the way from a flavor with a multiplier to the query string, the modules imported."""
    from query import GOLD, ours

    return lambda: ours(GOLD)()


def prepared_weigher() -> Callable[[], object]:
    """Return the weighing of hosts with the weigher that nova-scheduler has started.

    The score is that of the request for the server, with its shares.
    """
    from nova import objects
    from nova.scheduler.weights import HostWeightHandler
    from weigher import host_states, request_spec

    from cpu_tiers.conf import filter_scheduler
    from cpu_tiers.nova import options
    from cpu_tiers.nova.options import CONF
    from cpu_tiers.nova.scheduler.weigher import MULTIPLIER, ResourceProviderWeigher

    objects.register_all()
    CONF([], default_config_files=[])
    options.register(filter_scheduler)
    CONF.set_override("query_placement_for_vcpu_shares", True, group="filter_scheduler")
    ours, handler, spec = ResourceProviderWeigher(), HostWeightHandler(), request_spec()
    CONF.set_override(MULTIPLIER, 1.0, group="filter_scheduler")
    return lambda: handler.get_weighed_objects([ours], host_states(spec), spec)


def capabilities() -> str:
    """Return libvirt's capabilities of a host with two NUMA nodes of four CPUs."""
    cells = "".join(
        f"<cell id='{node}'><memory unit='KiB'>8388608</memory>"
        "<pages unit='KiB' size='4'>1572864</pages><pages unit='KiB' size='2048'>1024</pages>"
        "<cpus>"
        + "".join(
            f"<cpu id='{cpu}' socket_id='{node}' core_id='{cpu}' siblings='{cpu}'/>"
            for cpu in range(4 * node, 4 * node + 4)
        )
        + "</cpus></cell>"
        for node in range(2)
    )
    return (
        "<capabilities><host><cpu><arch>x86_64</arch></cpu><topology>"
        f"<cells>{cells}</cells></topology></host></capabilities>"
    )


def snapshot() -> dict[str, Any]:
    """Return a cloud of hosts of which some lack the trait, and all lack memory."""
    plain = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    totals = {"VCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 999, "CUSTOM_VCPU_SHARES": 800}
    providers = [
        {
            "uuid": f"4c0f0b8e-7d4f-4b0e-9d0e-2f6f7b1f9a{number:02}",
            "name": f"host-{number}",
            "parent_uuid": None,
            "inventories": {
                name: {**plain, "total": total, "max_unit": total}
                for name, total in totals.items()
            },
            "traits": ["COMPUTE_NODE", "HW_CPU_X86_AVX2"][: 1 + number % 2],
            "aggregates": [],
        }
        for number in range(6)
    ]
    return {
        "format": "cpu-tiers cloud snapshot",
        "version": 1,
        "masked": False,
        "providers": providers,
        "consumers": {},
        "flavors": [],
    }


@contextlib.contextmanager
def filled_placement() -> Iterator[None]:
    """Have ``--placement embedded`` of commands be a Placement with the cloud of the snapshot."""
    with embedded_placement() as client:
        client.create_resource_class("CUSTOM_VCPU_SHARES")
        for provider in snapshot()["providers"]:
            uuid = client.create_provider(provider["name"]).uuid
            by_class = {name: Inventory(**n) for name, n in provider["inventories"].items()}
            inventories = Inventories(generation=0, by_class=by_class)
            generation = client.set_inventories(uuid, inventories).generation
            names = frozenset(provider["traits"])
            client.set_traits(uuid, Traits(generation=generation, names=names))
        with patch.object(session, "embedded_placement", lambda: contextlib.nullcontext(client)):
            yield


@contextlib.contextmanager
def audited_host(folder: Path) -> Iterator[None]:
    """Have commands read a host that is files in a folder, and the descriptions of its guests."""
    layout = Layout(folder, "v2 systemd")
    domains = []
    for number, weight in enumerate((400, 1)):
        uuid = f"2f6f7b1f-9a01-4b0e-9d0e-4c0f0b8e7d4{number}"
        layout.guest(uuid, weight)
        layout.write(f"proc/10{number + 1}0/task/10{number + 1}1/schedstat", "1000000000 0 1")
        domains.append(running_domain(uuid, weight))
    connection = SimpleNamespace(
        getCapabilities=capabilities,
        getHostname=lambda: "host-1",
        listAllDomains=lambda _: domains,
        close=lambda: None,
    )
    libvirt = SimpleNamespace(
        VIR_CONNECT_LIST_DOMAINS_ACTIVE=1,
        libvirtError=OSError,
        openReadOnly=lambda _: connection,
        registerErrorHandler=lambda *_: None,
    )
    with (
        patch.dict(sys.modules, libvirt=libvirt),
        patch.object(Files.__init__, "__defaults__", (folder,)),
    ):
        yield


def running_domain(uuid: str, weight: int) -> SimpleNamespace:
    """Return a guest of one vCPU as libvirt-python describes it."""
    xml = (
        f"<domain><name>{uuid}</name><uuid>{uuid}</uuid><vcpu cpuset='0-5'>1</vcpu>"
        f"<cputune><shares>{weight}</shares></cputune>"
        "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>"
    )
    return SimpleNamespace(
        name=lambda: uuid,
        XMLDesc=lambda: xml,
        schedulerParameters=lambda: {"cpu_shares": weight},
    )


def commands(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the flows that are commands."""
    documents = {
        "flavor.json": json.dumps(FLAVOR),
        "nova.conf": CONF,
        "capabilities.xml": capabilities(),
        "snapshot.json": json.dumps(snapshot()),
        "planned.json": json.dumps(planned_cloud()),
    }
    for name, text in documents.items():
        (folder / name).write_text(text)
    flavor, conf, host, cloud, planned = (str(folder / name) for name in documents)

    def run(*arguments: str, status: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert run_command(["--config-file", conf, *arguments]) == status

    show = ("inventory", "show", "--hostname", "one", "--capabilities", host)
    yield "a host to its inventories, with NUMA nodes", lambda: run(*show, status=0)
    ask = ("explain", flavor)
    yield "explain, from a snapshot", lambda: run(*ask, "--snapshot", cloud, status=3)
    room = ("plan", "room", "large", "--snapshot", planned)
    yield "plan room", lambda: run(*room, status=0)
    live = ("--placement", "embedded")
    with filled_placement(), audited_host(folder):
        yield "explain, live", lambda: run(*live, *ask, status=3)
        audit = (*live, "host", "audit", "--interval", "0.1")
        yield "host audit", lambda: run(*audit, status=3)


def flows(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each flow with its name."""
    yield "a multiplier to a query", prepared_query()
    yield from commands(folder)
    yield "the scores of the weigher", prepared_weigher()
