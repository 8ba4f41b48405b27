"""The services of one random life: three hosts with NUMA nodes, devices and networks."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import fixtures
from nova import context, objects
from nova.objects import ec2
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.conf import compute
from cpu_tiers.nova import options, seams
from cpu_tiers.nova.compute.driver import LibvirtDriver
from tests.nova.broken_answers import BrokenAnswers, Case
from tests.nova.computes import Computes, ProcessEnded
from tests.nova.networks import PORT_IDS, add_devices, bandwidth, placement_of
from tests.nova.numa.devices import (
    DEVICE_SPEC,
    MIGRATES_GPUS,
    VENDOR,
    Gpus,
    Interfaces,
    SriovNeutron,
    direct,
    report,
)
from tests.nova.numa.pinning import PINNING
from tests.nova.numa.random_lives.guests import CARD, MEMORY_MB, Guest
from tests.nova.placement_rows import placement_rows
from tests.nova.tier_changes import Weights
from tests.nova.traffic import Traffic
from tests.nova.wrapping import all_seams

Rows = dict[str, dict[str, int]]
"""Amounts by the name of the provider and by the resource class."""

HOSTS = ("one", "two", "old")
REQUESTS = {
    PORT_IDS[0]: bandwidth(1000),
    PORT_IDS[1]: bandwidth(500),
    SriovNeutron.PORTS[0]: direct(300),
    SriovNeutron.PORTS[1]: direct(2000),
}
"""What the ports ask for: two of Open vSwitch, and two of SR-IOV."""

CARD_PRODUCT = {"vendor_id": VENDOR, "product_id": fakelibvirt.PCI_PROD_ID}


class LifeCloud(LibvirtMigrationMixin, Computes):
    """The services, which start once for each life."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    microversion = "2.94"
    kind = PINNING
    extends_cpu_policies = True
    tier_change: ClassVar[str | None] = "resize"
    """``[compute] live_tier_change``."""

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Do nothing: the state machine has the steps."""

    def setUp(self) -> None:
        self.flags(periodic_enable=False, report_interval=0, service_down_time=3600)
        cards = json.dumps({**CARD_PRODUCT, "resource_class": CARD})
        alias = json.dumps({**CARD_PRODUCT, "name": "card", "resource_class": CARD})
        self.flags(device_spec=[*DEVICE_SPEC, cards], alias=[alias], group="pci")
        self.flags(report_in_placement=True, group="pci")
        self.options: dict[str, tuple[bool | None, bool]] = {}
        self.flavors: dict[Guest, str] = {}
        self.guests: dict[str, Guest] = {}
        self.struck: frozenset[str] = frozenset()
        """The requests of the last step of which none had an answer, by method and path."""
        options.register(compute)
        self.flags(live_tier_change=self.tier_change, group="compute")
        super().setUp()
        self.useFixture(Weights())
        self.configure(pci_in_placement=True)
        self.flags(shelved_offload_time=0, allow_resize_to_same_host=True)
        self.useFixture(fixtures.MockPatchObject(ec2, "_CACHE", None))
        self.addCleanup(seams.remove, all_seams())
        self.useFixture(Interfaces())
        self.useFixture(Gpus())
        self.neutron = self.useFixture(SriovNeutron(self))
        for port, request in REQUESTS.items():
            self.neutron.ask(port, request)
        self.client = placement_of(self)
        self.broken = BrokenAnswers()
        self.traffic = self.useFixture(Traffic(self.broken))
        update = LibvirtDriver.update_provider_tree

        def with_its_options(driver: Any, tree: Any, host: str, allocations: Any = None) -> None:
            """All computes share the options of this process; each has some of its own."""
            self._set_options(host)
            update(driver, tree, host, allocations)

        name = "cpu_tiers.nova.compute.driver.LibvirtDriver.update_provider_tree"
        self.useFixture(fixtures.MonkeyPatch(name, with_its_options))

    def _set_options(self, host: str) -> None:
        nodes, shares = self.options[host]
        self.nodes(nodes)
        self.reporting(shares)

    def begin(self, host: str, *, nodes: bool | None, shares: bool) -> None:
        """Start a host with its options, its devices and its agents."""
        self.options[host] = nodes, shares
        self._set_options(host)
        # A single card: of several cards, Nova's own _move_claim takes any card for a resize, also
        # a card that Placement has not allocated, and the server then holds two cards.
        devices = fakelibvirt.HostPCIDevicesInfo(num_pci=1, num_pfs=2, num_vfs=8, num_mdevcap=2)
        self.start_compute(host, host_info=self.kind.hardware(), pci_info=devices, **MIGRATES_GPUS)
        add_devices(self.client, host)
        report(self.client, host)

    def restart(self, name: str) -> None:
        """Restart a host; if it refuses to start while requests fail, start it without faults."""
        self._set_options(name)
        uuid, service = self.compute_rp_uuids[name], self.computes[name]
        try:
            super().restart(name)
        except ProcessEnded:
            assert self.broken.case is not None
            self.broken.begin(None)
            self.compute_rp_uuids[name], self.computes[name] = uuid, service
            super().restart(name)

    def _migrate_stub(self, domain: Any, destination: str, params: Any, flags: int) -> None:
        """Move a guest, as libvirt does: no step says in advance where it goes.

        Nova has the destination define the guest. A guest that is only created would be gone
        once it is off, such as in a shelve. And Nova has the source undefine the guest: an
        evacuation back to the host would find it there.
        """
        host = destination.split("/")[2]  # qemu+tcp://one/system
        connection = self.computes[host].driver._host.get_connection()
        connection.defineXML(params["destination_xml"]).create()
        domain.complete_job()
        assert flags & fakelibvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        domain.destroy()
        domain.undefine()

    def flavor_of(self, guest: Guest) -> str:
        """Return the id of a guest's flavor."""
        if guest not in self.flavors:
            name = f"flavor {len(self.flavors)}"
            self.guests[name] = guest
            self.flavors[guest] = self._create_flavor(
                name=name,
                vcpu=guest.vcpus,
                memory_mb=guest.parts * MEMORY_MB,
                disk=guest.disk_gb,
                ephemeral=0,
                extra_spec=self.specs_of(guest),
            )
        return self.flavors[guest]

    def specs_of(self, guest: Guest) -> dict[str, str]:
        """Return the extra specs of a guest's flavor."""
        return guest.specs()

    def boot_request(self, guest: Guest, ports: list[str], *, volume: bool) -> dict[str, Any]:
        """Return the body of a request for a server."""
        networks: Any = [{"port": port} for port in ports] or "none"
        body: dict[str, Any] = self._build_server(
            flavor_id=self.flavor_of(guest), networks=networks, image_uuid="" if volume else None
        )
        if volume:
            disk = {"boot_index": 0, "source_type": "volume", "destination_type": "volume"}
            disk |= {"uuid": nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}
            body["block_device_mapping_v2"] = [disk]
        return body

    @contextmanager
    def faulty(self, case: Case | None) -> Iterator[None]:
        """Have one request of cpu-tiers fail, or all from one on; or the API refuse the step."""
        self.broken.begin(case)
        before = len(self.traffic.requests)
        try:
            yield
        except OpenStackApiException as error:
            if error.response.status_code >= 500:
                raise
        self.traffic.settle()
        self.broken.end()
        sent, failed = Counter(self.traffic.requests[before:]), Counter(self.broken.failed)
        self.struck = frozenset(path for path, count in failed.items() if sent[path] == count)

    @staticmethod
    def correct_request(server: str) -> None:
        """Have the request spec of a server request the PCI devices of the server's own flavor.

        After a revert, Nova leaves those of the other flavor there, and the next move allocates
        them (docs/contributor/upstream/reverted-resize.rst).
        """
        admin = context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
        alias = objects.InstancePCIRequest.FLAVOR_ALIAS
        own = objects.InstancePCIRequests.get_by_instance_uuid(admin, server).requests
        spec.pci_requests.requests = [
            *(request for request in spec.pci_requests.requests if request.source != alias),
            *(request for request in own if request.source == alias),
        ]
        spec.save()

    def carry_out_changes(self, servers: Mapping[str, str]) -> None:
        """Do what hosts do for pending changes of tiers with their next report.

        :param servers: the hosts of servers.
        """
        for server, host in servers.items():
            instance = objects.Instance.get_by_uuid(context.get_admin_context(), server)
            self.computes[host].driver.inject_network_info(instance, None)

    def unplug(self, server: str, host: str, port: str) -> None:
        """Remove the interface of a detached port from its guest.

        Nova's fake libvirt tells neither the tap device of an interface nor its PCI address, so
        Nova finds no interface to detach, and the next live migration would meet an interface
        without a port.
        """
        connection = self.computes[host].driver._host.get_connection()
        devices = connection.lookupByUUIDString(server)._def["devices"]
        mac = self.neutron._ports[port]["mac_address"]
        devices["nics"] = [nic for nic in devices["nics"] if nic["mac"] != mac]

    def delete(self, server: str) -> None:
        """Delete a server, also a server in ERROR, and wait until Nova has no such server."""
        # Nova's helper takes a server in ERROR for a deletion that failed, unless told before.
        self._delete_server({"id": server, "status": "ERROR"})

    def rows(self) -> dict[str, Rows]:
        """Return what each consumer of the cloud holds."""
        found: dict[str, Rows] = {}
        for consumer, provider, resource_class, amount in placement_rows().allocations:
            found.setdefault(consumer, {}).setdefault(provider, {})[resource_class] = amount
        return found

    def write_rows(self, consumer: str, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Have a consumer hold this, as an operator does after a fault."""
        url = f"/allocations/{consumer}"
        body = self.placement.get(url, version="1.28").body
        uuids = {name: uuid for uuid, name in self.tree.names().items()}
        body["allocations"] = {uuids[name]: {"resources": dict(rows[name])} for name in rows}
        if rows:
            assert self.placement.put(url, body, version="1.28").status == 204
        else:
            self.placement.delete(url)

    def ports_of(self, server: str) -> list[str]:
        """Return the ports that Neutron binds to a server."""
        return [port for port in REQUESTS if self.neutron._ports[port].get("device_id") == server]
