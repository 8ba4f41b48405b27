"""The domain that cpu-tiers prints beside the domain that nova-compute starts."""

from typing import Any

import fixtures
from lxml import etree
from nova import context, objects
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt.driver import LibvirtDriver

from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.nova.convert import to_flavor
from cpu_tiers.nova.convert_numa import to_compute_host, to_pinning
from cpu_tiers.tools.libvirt.domain import write_domain
from tests.nova.computes import MULTIPLIER, PLAIN, Computes
from tests.nova.kinds import Kind

DEDICATED = {"hw:cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "2-3"}
REALTIME = {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0-1"}
TWO_NODES = {"hw:numa_nodes": "2"}
FLAVORS: tuple[dict[str, str], ...] = (
    {},
    {MULTIPLIER: "2.5"},
    {MULTIPLIER: "0.25"},  # 0.25 x 4 = 1, and the guest gets 2
    {PLAIN: "1"},
    {"hw:cpu_policy": "shared"} | TWO_NODES,
    DEDICATED | {MULTIPLIER: "100"},
    DEDICATED | TWO_NODES | {"hw:emulator_threads_policy": "isolate"},
    DEDICATED | {"hw:cpu_emulator_threads": "share"},
    DEDICATED | REALTIME,
    DEDICATED | {"hw:cpu_realtime": "yes", "hw:emulator_threads_policy": "share"},
    MIXED | TWO_NODES | {MULTIPLIER: "2.5"},
    MIXED | {"hw:emulator_threads_policy": "isolate"},
    {"hw:cpu_policy": "mixed"} | REALTIME,
    {"resources:VCPU": "1", "resources:PCPU": "3"} | TWO_NODES,
    {"hw:mem_page_size": "small"} | TWO_NODES,
)
PRINTED = ("vcpu", "memory", "iothreads", "cputune", "numatune", "cpu/numa", "memoryBacking")
ABSENT = () if hasattr(LibvirtDriver, "_get_guest_iothread") else ("iothreads", "iothreadpin")
"""Nova 31 and 32 give a guest no I/O thread."""

SHARED_SET = "0-1,7-8"


def hardware() -> Any:
    """Return a host of two NUMA nodes with seven CPUs each."""
    return fakelibvirt.HostInfo(cpu_nodes=2, cpu_sockets=1, cpu_cores=7, cpu_threads=1)


def parts(xml: str) -> dict[str, list[Any]]:
    """Return the elements that cpu-tiers prints, without regard to order and to units."""
    domain = etree.fromstring(xml)
    return {
        path: sorted(map(_plain, domain.findall(path)), key=repr)
        for path in PRINTED
        if path not in ABSENT
    }


def _plain(element: Any) -> tuple[Any, ...]:
    attributes = dict(element.items())
    # libvirt adds placement="static" to the domain that it starts.
    attributes.pop("placement", None)
    kilobytes = 1024 if attributes.pop("unit", "KiB") == "MiB" else 1
    text = (element.text or "").strip()
    if element.tag == "memory" and text:
        text = str(int(text) * kilobytes)
    if "memory" in attributes:
        attributes["memory"] = str(int(attributes["memory"]) * kilobytes)
    children = sorted((_plain(child) for child in element if child.tag not in ABSENT), key=repr)
    return element.tag, sorted(attributes.items()), text, children


class TestDomain(Computes):
    microversion = "latest"
    extends_cpu_policies = True
    kind = Kind(
        scheduler_options={"query_placement_for_vcpu_shares": True},
        filters=("NUMATopologyFilter",),
        options={
            "compute": {"cpu_shared_set": SHARED_SET, "cpu_dedicated_set": "2-6,9-13"},
            "libvirt": {"realtime_scheduler_priority": 7},
        },
        hardware=hardware,
    )

    def setUp(self) -> None:
        super().setUp()
        self.started: list[str] = []
        create = libvirt_guest.Guest.create.__func__

        def create_and_record(cls: Any, xml: Any, host: Any) -> Any:
            self.started.append(xml if isinstance(xml, str) else xml.decode())
            return create(cls, xml, host)

        self.useFixture(
            fixtures.MockPatchObject(libvirt_guest.Guest, "create", classmethod(create_and_record))
        )

    def printed(self, server: str) -> str:
        """Return the domain of cpu-tiers, on the CPUs that Nova chose for the server."""
        admin = context.get_admin_context()
        instance = objects.Instance.get_by_uuid(
            admin, server, expected_attrs=["flavor", "numa_topology"]
        )
        flavor = to_flavor(instance.flavor)
        node = objects.ComputeNode.get_by_nodename(admin, instance.node)
        topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        nova = instance.numa_topology
        guest = Guest(
            name=instance.name,
            flavor=flavor,
            arch="x86_64",
            host=to_compute_host(topology, cpu_shared_set=CpuSet.parse(SHARED_SET, where="-")),
            topology=guest_topology(guest_cpus(flavor)),
            pinning=to_pinning(nova) if nova else None,
            realtime_priority=7,
        )
        return write_domain(guest)

    def check(self, name: str, specs: dict[str, str]) -> None:
        server = self.boot(self.flavor(name, specs, vcpus=4))
        nova, ours = parts(self.started.pop()), parts(self.printed(server["id"]))
        self._delete_server(server)
        # One by one: a message shows only the beginning of a long value.
        for path, element in nova.items():
            assert element == ours[path], (specs, path, element, ours[path])

    def test_flavors_of_all_policies(self) -> None:
        self.start_host("one")
        for number, specs in enumerate(FLAVORS):
            with self.subTest(number, specs=specs):
                self.check(f"flavor {number}", specs)
