"""Every reader of cpu-tiers, as a function of the bytes of an input, with valid inputs.

A function does with an input what a command or a service does: it reads the input, and computes
with the values. An input that is not valid has to end with a :class:`CpuTiersError`.
"""

import atexit
import io
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from requests import Response

from cpu_tiers.conf.read import inventory_options, read_config
from cpu_tiers.errors import CpuTiersError, FaultList, printable
from cpu_tiers.inventory import Host, build_tree
from cpu_tiers.inventory.contract import InventoryOptions
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.placement.plan import steps
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.host import load_between, read_load
from cpu_tiers.tools.cgroup.host import read_host as read_cgroups
from cpu_tiers.tools.cgroup.nova_compute import find_config
from cpu_tiers.tools.cgroup.processes import read_cpu_times
from cpu_tiers.tools.cloud.audit_files import read_audit_file
from cpu_tiers.tools.compute_api import read_flavors as read_flavors_of_nova
from cpu_tiers.tools.frame.app import main
from cpu_tiers.tools.frame.documents import read_flavors, read_image, read_json, read_port
from cpu_tiers.tools.frame.server_arguments import read_tiers
from cpu_tiers.tools.host.audit import write_metrics
from cpu_tiers.tools.host.checks import audit
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.libvirt.domain import parse_domain
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement import inventories, sync
from cpu_tiers.tools.placement.candidate_answer import read_answer, read_candidate_list
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import read_state
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.writers.plan_file import digest_of, read_plan
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.broken_rules import request_faults
from cpu_tiers.weights import SCORINGS, make_forest
from cpu_tiers.weights.fragmentation import best_first

UUID = "00000000-0000-4000-8000-000000000001"
_DEMO = Path(__file__).parents[2] / "cpu_tiers" / "tools" / "demo" / "data"
_MOST_VCPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader.

    :param read: raises an error other than :class:`CpuTiersError` only by mistake.
    :param seeds: valid inputs, which are mutated.
    :param weight: the part of the inputs that this reader gets; a slow reader gets fewer.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    weight: float = 1.0


def _given(content: bytes) -> str:
    """Return the path of a file with this content: of standard input."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(content))
    return "-"


def _query(server: ServerRequest) -> None:
    """Compute the query for a server, and all its faults."""
    for query_numa in (False, True):
        asking = server._replace(query_numa=query_numa, query_vcpu_shares=True)
        request_faults(asking)
        for query in (translate(asking), fallback(asking)):
            if query is not None:
                query.to_query_string()


_GOLD = Flavor(name="gold", vcpus=4, memory_mb=4096, extra_specs={"hw:numa_nodes": "2"})


def capabilities(content: bytes) -> None:
    """Read ``virsh capabilities``, and build the provider tree."""
    host = Host(name="compute1", topology=parse_capabilities(content, where="capabilities"))
    for with_nodes in (False, True):
        build_tree(
            host,
            InventoryOptions(
                report_vcpu_shares=True, enable_numa_reporting_to_placement=with_nodes
            ),
        )


def domain(content: bytes) -> None:
    """Read ``virsh dumpxml``, audit the guest, and write its metrics."""
    guest = parse_domain(content, where="domain")
    if len(guest.vcpu_sets) > _MOST_VCPUS:
        return  # what thousands of vCPUs cost is measured elsewhere
    _audit(guest)


def _audit(guest: Domain, cgroups: HostCgroups | None = None) -> None:
    """Audit a host with a guest, and write the metrics."""
    cpus = CpuSet(range(8))
    host = Occupancy(
        domains=(replace(guest, weight=due_weight(guest) or 100),),
        cpus=cpus,
        shared_cpus=cpus,
        default_weight=100,
        services={},
        inventories={},
    )
    evidence = Evidence(host=host, dedicated_cpus=cpus, cgroups=cgroups)
    findings = audit(evidence)
    for finding in findings:
        printable(f"{finding.where} {finding.found}").encode()
    tiers = read_tiers(SimpleNamespace(tier=None))  # type: ignore[arg-type]  # a namespace
    write_metrics("/dev/null", evidence, findings, tiers)


def flavors(content: bytes) -> None:
    """Read ``openstack flavor show`` and ``flavor list``."""
    faults = FaultList()
    for flavor in read_flavors(_given(content), faults):
        _query(ServerRequest(flavor, None))
    faults.raise_if_any()


def image(content: bytes) -> None:
    """Read ``openstack image show``."""
    _query(ServerRequest(_GOLD, read_image(_given(content))))


def port(content: bytes) -> None:
    """Read ``openstack port show``."""
    _query(ServerRequest(_GOLD, None, ports=(read_port(_given(content)),)))


def extra_specs(content: bytes) -> None:
    """Read the extra specs and image properties that the API gives: lines ``key=value``."""
    lines = (line.partition("=") for line in content.decode("utf-8", "replace").split("\n"))
    pairs = {key: value for key, _, value in lines}
    flavor = Flavor(name="f", vcpus=8, memory_mb=2048, extra_specs=pairs)
    _query(ServerRequest(flavor, Image(name="i", properties=pairs)))


def candidates(content: bytes) -> None:
    """Read a body of ``GET /allocation_candidates``, weigh the hosts, and claim a candidate.

    A list is what the openstack client prints of the body.
    """
    document = read_json(_given(content))
    parse = read_candidate_list if isinstance(document, list) else read_answer
    answer = parse(document, where="answer").usable()
    for scoring in SCORINGS.values():
        forest = make_forest(answer.provider_summaries, {"VCPU": 1}, ["A"], scoring=scoring)
        for host in answer.hosts():
            forest.explain(host)
    for request in best_first(answer).allocation_requests[:3]:
        answer.after(request)


def agents(content: bytes) -> None:
    """Read ``openstack network agent show``."""
    build_networking_trees([NetworkAgent.parse(read_json(_given(content)), where="agent")])


def saved_plan(content: bytes) -> None:
    """Read a plan of ``reshape plan --save``."""
    read_plan(read_json(_given(content)), where="plan")


def cpu_set(content: bytes) -> None:
    """Read a CPU mask."""
    text = content.decode("utf-8", "replace")
    cpus = CpuSet.parse(text, where="mask", every=frozenset(range(8)))
    assert CpuSet.parse(str(cpus), where="mask") == cpus


def tiers(content: bytes) -> None:
    """Read the values of ``--tier``."""
    texts = content.decode("utf-8", "replace").split("\n")
    read_tiers(SimpleNamespace(tier=texts))  # type: ignore[arg-type]  # a namespace


_CONF = f"/proc/self/fd/{os.memfd_create('nova.conf')}"


def nova_conf(content: bytes) -> None:
    """Read a nova.conf."""
    Path(_CONF).write_bytes(content)
    inventory_options(read_config([_CONF]))


class _Answers:
    """A transport that gives one answer to each request but the first."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer

    def request(self, url: str, method: str, **_: Any) -> Response:
        return _response(200, _VERSIONS) if url == "/" else self.answer

    def get(self, path: str, microversion: str) -> Response:
        return self.answer


_VERSIONS = b'{"versions": [{"id": "v1.0", "max_version": "1.39"}]}'


def _response(status: int, content: bytes) -> Response:
    response = Response()
    response.status_code = status
    response.headers["Content-Type"] = "application/json"
    response._content = content
    return response


def placement(content: bytes) -> None:
    """Read an answer of Placement in every call; the first line of the input is the status."""
    status, _, body = content.partition(b"\n")
    code = int(status) if status.isdigit() and len(status) == 3 else 200
    client = PlacementClient(_Answers(_response(code, body)), retry_policy=RetryPolicy(attempts=1))
    tree = build_networking_trees([NetworkAgent.parse(_AGENT, where="agent")])[0]
    calls: tuple[Callable[[], object], ...] = (
        client.providers,
        lambda: client.find_provider("compute1"),
        lambda: client.inventories(UUID),
        lambda: client.traits(UUID),
        lambda: client.usages(UUID),
        lambda: client.allocations(UUID),
        lambda: client.consumer(UUID),
        client.traits_in_use,
        lambda: client.absent_names({"CUSTOM_A"}, {"CUSTOM_B"}),
        lambda: client.create_provider("compute1"),
        lambda: client.candidates(translate(ServerRequest(_GOLD, None))),
        lambda: client.set_consumers(client.consumer(UUID)),
        lambda: sync.read_host(client, "compute1"),
        lambda: inventories.survey(client),
        lambda: steps(read_state(client, tree), tree),
    )
    for call in calls:
        with _refused():
            call()
    with _refused():
        PlacementClient(_Answers(_response(code, body))).microversion  # noqa: B018
    first = _Answers(_response(code, body))
    first.request = lambda url, method, **_: first.answer  # type: ignore[method-assign]  # also /
    with _refused():
        PlacementClient(first, retry_policy=RetryPolicy(attempts=1)).providers()


class _refused:  # noqa: N801  # a context manager, like contextlib's
    """Go on after an error of ours: each call reads the answer."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        return kind is not None and issubclass(kind, CpuTiersError)


def nova(content: bytes) -> None:
    """Read an answer of Nova's API."""
    adapter: Any = _Answers(_response(200, content))
    services = Services(adapter=lambda _: adapter, retry_policy=RetryPolicy(attempts=1))
    _first(read_flavors_of_nova(services))


def _first(flavors_of_nova: Iterator[Mapping[str, Any]]) -> None:
    for _ in zip(range(5), flavors_of_nova, strict=False):
        pass


class _Kernel(Files):
    """The files of a host with a guest, from the parts of an input."""

    def __init__(self, parts: list[bytes]) -> None:
        super().__init__()
        self._parts = dict(zip(_PATHS, parts, strict=False))
        self._other = parts[-1]

    def read(self, path: str) -> str:
        if path.startswith("/sys/kernel"):
            raise FileNotFoundError
        part = self._parts.get(path, self._parts.get(path.replace("task/8/", ""), self._other))
        return part.decode("utf-8", "surrogateescape")

    def folders(self, path: str) -> list[str]:
        known = {"/proc": ["7", "self"], "/proc/7/task": ["8"]}
        return known.get(path, ["a"] if path.count("/") < 8 else [])

    def target(self, path: str) -> str:
        return "/usr/bin/qemu"


_PATHS = (
    "/proc/self/mounts", "/proc/7/cmdline", "/proc/7/cgroup", "/proc/7/task/8/stat",
    "/proc/7/status", "/proc/7/task/8/cgroup", "/proc/7/task/8/schedstat", "/proc/stat",
    "/proc/7/stat",
)  # fmt: skip
"""The files of the parts of an input; all other files have the last part."""


def kernel(content: bytes) -> None:
    """Read /proc and the cgroups of a host; the parts of the input are the files."""
    files = _Kernel(content.split(b"\xff\xff"))
    guest = replace(parse_domain(_DOMAIN, where="domain"), owner="0")
    found = read_cgroups([guest], files)
    read_cpu_times(files, found.guests)
    load_between(files, read_load(files), 1.0)
    find_config(files)
    _audit(guest, found)


def _file(name: str) -> str:
    """Return the path of a file in memory."""
    return f"/proc/self/fd/{os.memfd_create(name)}"


# The processes of all readers have these files in common, so each reader has files of its own.
_SNAPSHOT_FILE, _RECORD_FILE = _file("snapshot"), _file("record")
_REQUESTS_FILE, _REQUESTED_FILE = _file("requests"), _file("requested")
_AUDIT_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-audit-"))
atexit.register(shutil.rmtree, _AUDIT_FOLDER, ignore_errors=True)


def _run(*command: str) -> None:
    """Run a whole command, without its output.

    ``--debug`` prints a traceback of the error, which has to be one of cpu-tiers.
    """
    output, handlers = io.StringIO(), logging.getLogger().handlers
    arguments = ["--debug", "--config-file", "/dev/null", *command]
    with redirect_stdout(output), redirect_stderr(output), suppress(SystemExit, CpuTiersError):
        main(arguments)
    handlers.clear()  # cliff adds one in each run
    text = output.getvalue()
    if "Traceback (most" in text:
        after = text[text.rindex("Traceback (most") :].splitlines()[1:]
        error = next(line for line in after if not line.startswith(" "))
        assert error.startswith("cpu_tiers."), text


def snapshot(content: bytes) -> None:
    """Run every command that reads a snapshot."""
    Path(_SNAPSHOT_FILE).write_bytes(content)
    given = ("--snapshot", _SNAPSHOT_FILE)
    _run("cloud", "show", *given)
    _run("capacity", "--flavor", "gold", *given)
    _run("explain", "--flavor", "gold", *given)
    _run("weigh", "--flavor", "gold", *given)
    _run("simulate", _SNAPSHOT_FILE, "--draw", "3")


def requests(content: bytes) -> None:
    """Run a simulation of a table of requests."""
    Path(_REQUESTED_FILE).write_bytes(_json(_SNAPSHOT))
    Path(_REQUESTS_FILE).write_bytes(content)
    _run("simulate", _REQUESTED_FILE, "--requests", _REQUESTS_FILE)


def record(content: bytes) -> None:
    """Read the record of decisions about a server."""
    Path(_RECORD_FILE).write_bytes(content)
    _run("explain", "--server", UUID, "--decisions", _RECORD_FILE)


def audit_file(content: bytes) -> None:
    """Read the findings and the metrics of a host, for the page of the cloud."""
    for suffix in ("json", "prom"):
        path = _AUDIT_FOLDER / f"compute1.{suffix}"
        path.write_bytes(content)
        with _refused():
            read_audit_file(str(path))


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


_DOMAIN = f"""<domain type='kvm'><name>a</name><uuid>{UUID}</uuid>
<metadata><nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>
<nova:flavor name='gold'><nova:extraSpecs>
<nova:extraSpec name='quota:cpu_shares_multiplier'>2.5</nova:extraSpec>
</nova:extraSpecs></nova:flavor></nova:instance></metadata>
<vcpu placement='static' cpuset='0-7' current='2'>4</vcpu>
<vcpus><vcpu id='0' enabled='yes'/><vcpu id='1' enabled='no'/></vcpus>
<cputune><shares>250</shares><vcpupin vcpu='0' cpuset='3'/><emulatorpin cpuset='0-1,^0'/>
</cputune></domain>""".encode()
_SPECS = {
    "quota:cpu_shares_multiplier": "2.5", "hw:numa_nodes": "2", "hw:cpu_policy": "mixed",
    "hw:cpu_dedicated_mask": "0-1", "hw:mem_page_size": "large", "trait:CUSTOM_A": "required",
    "resources1:CUSTOM_B": "2", "group_policy": "none",
}  # fmt: skip
_FLAVOR = {
    "name": "gold", "vcpus": 4, "ram": 2048, "disk": 1, "swap": "", "OS-FLV-EXT-DATA:ephemeral": 0,
    "properties": _SPECS,
}  # fmt: skip
_ROW = {
    "Name": "gold", "VCPUs": 4, "RAM": 512, "Disk": 1, "Ephemeral": 0, "Swap": 0,
    "Properties": {"hw:cpu_policy": "dedicated"},
}  # fmt: skip
_IMAGE = {
    "name": "i",
    "properties": {"hw_cpu_policy": "shared", "trait:CUSTOM_A": "required"},
}
_REQUEST = {
    "request_groups": [
        {"id": "a", "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 5}, "required": ["CUSTOM_A"]},
        {"id": "b", "resources": {"NET_BW_IGR_KILOBIT_PER_SEC": 5}, "required": ["!CUSTOM_A"]},
    ],
    "same_subtree": ["a", "b"],
}  # fmt: skip
_PORT = {"id": "p", "resource_request": _REQUEST, "binding_profile": {"allocation": {"a": UUID}}}
_FLAT = {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 5}, "required": ["in:CUSTOM_A,CUSTOM_B"]}
_ANSWER = {
    "allocation_requests": [
        {
            "allocations": {"n": {"resources": {"VCPU": 2}}, "r": {"resources": {"DISK_GB": 2}}},
            "mappings": {"": ["r"], "_PROC1": ["n"], "_MEM1": ["n"]},
        }
    ],
    "provider_summaries": {
        "r": {
            "resources": {"DISK_GB": {"capacity": 9, "used": 0}}, "traits": ["A"],
            "parent_provider_uuid": None, "root_provider_uuid": "r",
        },
        "n": {
            "resources": {"VCPU": {"capacity": 8, "used": 2}},
            "traits": ["CUSTOM_MEMORY_PAGE_SIZE_4"],
            "parent_provider_uuid": "r", "root_provider_uuid": "r",
        },
    },
}  # fmt: skip
_AGENT: dict[str, Any] = {
    "host": "compute1", "agent_type": "Open vSwitch agent",
    "configuration": {
        "resource_provider_bandwidths": {"br-ex": {"egress": 1000, "ingress": None}},
        "resource_provider_inventory_defaults": {"allocation_ratio": 1.0, "min_unit": 1},
        "resource_provider_hypervisors": {"br-ex": "compute1"},
        "resource_provider_packet_processing_without_direction": {"compute1": {"any": 5}},
        "bridge_mappings": {"physnet0": "br-ex"},
    },
}  # fmt: skip
_AMOUNTS = {"VCPU": 2, "MEMORY_MB": 1024}
_MOVED = {
    "name": "server web-1",
    "held": _AMOUNTS,
    "resources": {"compute1_NUMA0": _AMOUNTS},
}
_PLAN = {"host": "compute1", "consumers": {UUID: _MOVED}}
_DIGEST = digest_of("compute1", {UUID: _MOVED})
_PROVIDER = {"uuid": UUID, "name": "compute1", "root_provider_uuid": UUID, "generation": 1}
_CHILD = {
    "uuid": "c", "name": "compute1_NUMA0",
    "root_provider_uuid": UUID, "parent_provider_uuid": UUID,
}  # fmt: skip
_INVENTORY = {
    "total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1,
    "allocation_ratio": 4.0,
}  # fmt: skip
_EVERYTHING = {
    **_PROVIDER,
    **_ANSWER,
    "versions": [{"max_version": "1.39"}],
    "resource_providers": [_PROVIDER, _CHILD],
    "resource_provider_generation": 1,
    "inventories": {"VCPU": _INVENTORY},
    "traits": ["HW_NUMA_ROOT"],
    "usages": {"VCPU": 1},
    "allocations": {UUID: {"resources": {"VCPU": 1}}},
    "resource_classes": [{"name": "VCPU"}],
    "consumer_generation": 1,
    "project_id": "p",
    "user_id": "u",
    "consumer_type": "INSTANCE",
}
_ERROR = {"errors": [{"status": 409, "detail": "no", "code": "placement.concurrent_update"}]}
_FLAVORS_OF_NOVA = {
    "flavors": [{"id": "1", "extra_specs": {"a": "b"}}, {"id": "2"}],
    "flavors_links": [{"rel": "next"}],
    "extra_specs": {"a": "b"},
}
_STAT = f"8 (CPU 0/KVM) S {' '.join('0' for _ in range(4, 41))} 1 0 0\n"
_SCOPE = r"/machine.slice/machine-qemu\x2d1\x2dvm.scope"
_PROCESS = (
    "Name:\tqemu\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-3\n",
    f"0::{_SCOPE}/libvirt/vcpu0\n",
    "1000000000 2000000 5\n", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n", _STAT,
)  # fmt: skip
_HOST_V2 = (
    "cgroup2 /sys/fs/cgr\\040oup cgroup2 rw 0 0\n", f"qemu\0-uuid\0{UUID}\0",
    f"0::{_SCOPE}/libvirt/emulator\n", _STAT, *_PROCESS, "100\n",
)  # fmt: skip
_HOST_V1 = (
    "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", f"qemu\0-uuid\0{UUID}\0",
    "5:memory:/x\n2:cpu,cpuacct:/machine/qemu-1-vm.libvirt-qemu/vcpu0\n",
    _STAT, *_PROCESS, "1024\n",
)  # fmt: skip
_NOVA_CONF = b"""[DEFAULT]
cpu_allocation_ratio = 4.0
reserved_huge_pages = node:0,size:2048,count:64
[compute]
cpu_shared_set = 0-3,^2
cpu_dedicated_set = 4-7
[libvirt]
report_vcpu_shares = true
vcpu_share_multiplier = 100
[filter_scheduler]
resource_provider_scoring = boring
resource_provider_resources = VCPU,MEMORY_MB
"""

_CANDIDATE_LIST = [
    {
        "#": 1,
        "allocation": "VCPU=1,MEMORY_MB=512",
        "resource provider": "11111111-1111-4111-8111-111111111111",
        "inventory used/capacity": "VCPU=0/8,MEMORY_MB=0/4096",
        "traits": "COMPUTE_NODE,A",
    }
]

_SNAPSHOT = {
    "format": "cpu-tiers cloud snapshot", "version": 1, "taken": "2026-11-23T08:00:00Z",
    "masked": False,
    "providers": [
        {
            "uuid": uuid, "name": uuid, "parent_uuid": parent, "traits": ["CUSTOM_A"],
            "aggregates": ["g"],
            "inventories": {
                name: {**_INVENTORY, "total": 4096, "max_unit": 4096}
                for name in ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VCPU_SHARES")
            },
        }
        for uuid, parent in (("a", None), ("b", "a"))
    ],
    "consumers": {"server": {"a": {"VCPU": 2, "PCPU": 1, "CUSTOM_VCPU_SHARES": 100}}},
    "flavors": [
        {
            "name": "gold", "vcpus": 2, "memory_mb": 512, "root_gb": 1,
            "extra_specs": {"quota:cpu_shares_multiplier": "50"},
        }
    ],
}  # fmt: skip
_CHOSEN = {"number": 1, "names": ["a"]}
_DECISION = {
    "time": "2026-11-23T08:00:00.000+00:00", "seconds": 0.1, "request_id": "req-1",
    "servers": [UUID], "flavor": "gold", "queries": ["resources=VCPU:1"], "candidates": _CHOSEN,
    "rounds": [
        {
            "server": UUID, "filters": [{"filter": "F", "left": 1, "removed": _CHOSEN}],
            "weights": [{"host": "a", "weight": 1.0, "parts": {"W": 1.0}}],
            "claims": [{"providers": ["p"], "granted": True}],
        }
    ],
    "selected": [{"host": "a", "alternates": ["b"]}], "fault": None,
}  # fmt: skip
_FOUND = {"kind": "weight", "where": "guest a", "found": "1", "do": "fix", "fixed": False}
_METRICS_OF_AUDIT = b"""# HELP cpu_tiers_guest_floor_cpus x
# TYPE cpu_tiers_guest_floor_cpus gauge
cpu_tiers_guest_floor_cpus{guest="a",uuid="u",tier="gold"} 1.5
"""

READERS: Mapping[str, Reader] = {
    "audit_file": Reader(read=audit_file, seeds=(_json([_FOUND]), _METRICS_OF_AUDIT)),
    "record": Reader(read=record, seeds=(_json(_DECISION) + b"\n",), weight=0.02),
    "requests": Reader(
        read=requests, seeds=(b"time,flavor,lifetime\n1,gold,5\n2.5,gold,\n",), weight=0.01
    ),
    "snapshot": Reader(read=snapshot, seeds=(_json(_SNAPSHOT),), weight=0.005),
    "agents": Reader(read=agents, seeds=(_json(_AGENT),)),
    "candidates": Reader(read=candidates, seeds=(_json(_ANSWER), _json(_CANDIDATE_LIST))),
    "capabilities": Reader(
        read=capabilities,
        seeds=tuple((_DEMO / name).read_bytes() for name in ("small.xml", "plain.xml")),
    ),
    "cpu_set": Reader(read=cpu_set, seeds=(b"0-3,8,^2", b"^0", b" 1 - 2 ,,5")),
    "domain": Reader(read=domain, seeds=(_DOMAIN,)),
    "extra_specs": Reader(
        read=extra_specs,
        seeds=(
            b"\n".join(f"{key}={value}".encode() for key, value in _SPECS.items()),
            b"hw:emulator_threads_policy=isolate\nhw:cpu_realtime=yes\nhw:cpu_realtime_mask=^0\n"
            b"hw_cpu_policy=dedicated\nquota:cpu_shares=9\nhw:numa_nodes=2\nhw:numa_cpus.0=0-6\n"
            b"hw:numa_cpus.1=7\nhw:numa_mem.0=512\nhw:numa_mem.1=1536\nhw:cpu_thread_policy=isolate",
        ),
        weight=0.3,
    ),
    "flavors": Reader(read=flavors, seeds=(_json(_FLAVOR), _json([_ROW, _FLAVOR]))),
    "image": Reader(read=image, seeds=(_json(_IMAGE),)),
    "kernel": Reader(
        read=kernel,
        seeds=tuple("\xff\xff".join(h).encode("latin1") for h in (_HOST_V1, _HOST_V2)),
        weight=0.3,
    ),
    "nova": Reader(read=nova, seeds=(_json(_FLAVORS_OF_NOVA),), weight=0.5),
    "nova_conf": Reader(read=nova_conf, seeds=(_NOVA_CONF,), weight=0.1),
    "placement": Reader(
        read=placement,
        seeds=(b"200\n" + _json(_EVERYTHING), b"409\n" + _json(_ERROR), b"204\n"),
        weight=0.3,
    ),
    "plan": Reader(read=saved_plan, seeds=(_json({**_PLAN, "digest": _DIGEST}),)),
    "port": Reader(read=port, seeds=(_json(_PORT), _json({**_PORT, "resource_request": _FLAT}))),
    "tiers": Reader(read=tiers, seeds=(b"gold=100x4\nsilver=2.5",)),
}
"""The readers by name."""
