"""The services of a drawn cloud: Nova's own over a real Placement, and the drawn servers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import fixtures
from nova import context, exception, objects
from nova.conf import CONF
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api.client import OpenStackApiException
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin
from oslo_utils.uuidutils import generate_uuid

from cpu_tiers.nova import seams
from cpu_tiers.nova.compute.driver import LibvirtDriver
from tests.nova.commands.judged_plans.drawing import (
    SSD,
    TRAITS,
    DrawnCloud,
    DrawnHost,
    DrawnServer,
)
from tests.nova.computes import Computes
from tests.nova.kinds import OURS, Kind
from tests.nova.networks import PORT_IDS, Neutron, add_devices, bandwidth, placement_of
from tests.nova.numa.pinning import pinning_kind
from tests.nova.patience import PATIENCE, wait_until
from tests.nova.wrapping import all_seams

NOVAS = ("nova.scheduler.weights.all_weighers",)
STOCK_OPTIONS = {
    "DEFAULT": {"initial_cpu_allocation_ratio": 1.0, "reserved_host_memory_mb": 0},
}


def eight_cpus() -> Any:
    """Return what libvirt says of a host of 8 CPUs."""
    return fakelibvirt.HostInfo(cpu_nodes=1, cpu_sockets=1, cpu_cores=4, cpu_threads=2)


PLAIN = Kind(
    driver="libvirt.LibvirtDriver",
    weighers=NOVAS,
    scheduler_options={"query_placement_for_vcpu_shares": False},
    options=STOCK_OPTIONS,
    hardware=eight_cpus,
)
"""Hosts with Nova's own driver, and a nova-scheduler without an option of cpu-tiers."""

NODES = pinning_kind()
"""Hosts that report their NUMA nodes."""

ACTIONS: Mapping[str, dict[str, Any]] = {
    "PAUSED": {"pause": None},
    "SHUTOFF": {"os-stop": None},
    "SUSPENDED": {"suspend": None},
    "RESCUE": {"rescue": {}},
    "VERIFY_RESIZE": {"migrate": None},
    "ERROR": {"os-resetState": {"state": "error"}},
    "SHELVED": {"shelve": None},
}


class JudgedCloud(LibvirtMigrationMixin, Computes):
    """The services of one drawn cloud."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    microversion = "latest"
    kind: ClassVar[Kind] = PLAIN
    drawn: DrawnCloud

    def runTest(self) -> None:  # noqa: N802  # unittest looks for this name
        """Do nothing: the judge has the steps."""

    @classmethod
    def of(cls, drawn: DrawnCloud) -> JudgedCloud:
        """Start the services of a drawn cloud; :meth:`end` stops them."""
        cloud = cls()
        cloud.kind = NODES if drawn.has_nodes else PLAIN  # type: ignore[misc]  # of this object
        cloud.drawn = drawn
        return cloud

    def setUp(self) -> None:
        self.flags(periodic_enable=False, report_interval=0, service_down_time=3600)
        super().setUp()
        for group, values in self.kind.options.items():
            self.flags(group=None if group == "DEFAULT" else group, **values)
        self.flags(shelved_offload_time=-1)
        self.flags(cores=-1, instances=-1, ram=-1, group="quota")
        for name in self.drawn.prefilters:
            self.flags(group="scheduler", **{name: True})
        if self.drawn.has_pool:  # Nova's driver reports its own disk beside a pool: bug 1784020
            self.flags(reserved_host_disk_mb=128 * 1024)
        self.flags(
            response_validation="warn", group="api"
        )  # Nova's default, not that of its tests
        self.addCleanup(seams.remove, all_seams())
        if self.kind.driver != OURS:
            copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
            self.useFixture(fixtures.MockPatch(copy, return_value="{}"))  # there are no disks
        self.neutron = self.useFixture(Neutron(self))
        self.client = placement_of(self)
        self.free_ports = list(PORT_IDS)
        for port in PORT_IDS:
            self.neutron.ask(port, bandwidth(1000))
        self.uuids: dict[str, str] = {}
        self.lost: set[str] = set()
        """The hosts whose nova-compute is down."""
        self.refused: dict[str, str] = {}
        """Why servers were not booted, by name."""

    def _setup_scheduler_service(self) -> Any:
        self.ADDITIONAL_FILTERS = [*self.kind.filters, *self.drawn.filters]
        return super()._setup_scheduler_service()

    def end(self) -> None:
        """Undo what :meth:`setUp` did, as unittest does after a test."""
        with ExitStack() as cleanups:
            for function, arguments, keywords in self._cleanups:
                cleanups.callback(function, *arguments, **keywords)

    def build(self) -> None:
        """Start the hosts, boot the servers, and have all of it as it was drawn."""
        self._with_its_options()
        # A query with a trait that no host ever had finds nothing: Placement does not know it.
        for name in {name for host in self.drawn.hosts for name in host.traits}:
            self._create_trait(name)
        for host in self.drawn.hosts:
            self._set_options(host.name)
            self.start_host(host.name)
            add_devices(self.client, host.name)
            self._set_traits(host, host.traits)
        if self.drawn.has_pool:
            self._share_disk()
        self._aggregates()
        self.group_ids = {
            name: self.api.post_server_groups({"name": name, "policy": policy})["id"]
            for name, policy in self.drawn.groups.items()
        }
        for server in self.drawn.servers:
            self._boot(server)
        for server in self.drawn.servers:
            if server.name in self.uuids:
                self._have_state(server)
        for host in self.drawn.hosts:
            self._have_host(host)

    def _with_its_options(self) -> None:
        """Have each host with our driver report its nodes or not: all share the options."""
        if self.kind.driver != OURS:
            return
        update = LibvirtDriver.update_provider_tree

        def with_its_options(driver: Any, tree: Any, host: str, allocations: Any = None) -> None:
            self._set_options(host)
            update(driver, tree, host, allocations)

        name = "cpu_tiers.nova.compute.driver.LibvirtDriver.update_provider_tree"
        self.useFixture(fixtures.MonkeyPatch(name, with_its_options))

    def _set_options(self, name: str) -> None:
        if self.kind.driver == OURS:
            (host,) = (host for host in self.drawn.hosts if host.name == name)
            self.nodes(host.has_nodes or None)

    def _set_traits(self, host: DrawnHost, traits: Iterable[str]) -> None:
        uuid = self.compute_rp_uuids[host.name]
        kept = set(self._get_provider_traits(uuid)) - set(host.traits)
        self._set_provider_traits(uuid, sorted(kept | set(traits)))

    def _share_disk(self) -> None:
        pool, aggregate = self._post_resource_provider("pool")["uuid"], generate_uuid()
        inventory = {"DISK_GB": {"total": 1000}}
        self._update_inventory(pool, {"inventories": inventory, "resource_provider_generation": 0})
        self._set_provider_traits(pool, ["MISC_SHARES_VIA_AGGREGATE"])
        for uuid in (pool, *self.compute_rp_uuids.values()):
            self._set_aggregate(uuid, aggregate)

    def _aggregates(self) -> None:
        hosts, project = self.drawn.hosts, self.api.project_id
        zones = sorted({host.zone for host in hosts} - {""})
        groups = [
            *(
                ({"availability_zone": zone}, [h for h in hosts if h.zone == zone])
                for zone in zones
            ),
            ({SSD: "true"}, [host for host in hosts if host.is_fast]),
            ({"filter_tenant_id": project}, [host for host in hosts if host.tenant == "ours"]),
            ({"filter_tenant_id": "theirs"}, [host for host in hosts if host.tenant == "theirs"]),
            ({f"trait:{TRAITS[0]}": "required"}, [host for host in hosts if host.is_isolated]),
        ]
        for number, (metadata, members) in enumerate(groups):
            if not members:
                continue
            body = {"aggregate": {"name": f"a{number}"}}
            uuid = self.api.post_aggregate(body)["id"]
            for host in members:
                self.api.add_host_to_aggregate(uuid, host.name)
            self.api.post_aggregate_action(uuid, {"set_metadata": {"metadata": metadata}})

    def _boot(self, server: DrawnServer) -> None:
        body = self._build_server(
            name=server.name,
            flavor_id=self._flavor_of(server),
            image_uuid="" if server.is_volume else self._image_of(server),
            networks=[{"port": self.free_ports[0]}]
            if server.ports and self.free_ports
            else "none",
            host=None if self._has_pooled_disk(server) else server.host,
            az=server.zone or None,
        )
        if server.is_volume:
            disk = {"boot_index": 0, "source_type": "volume", "destination_type": "volume"}
            disk |= {"uuid": nova_fixtures.CinderFixture.IMAGE_BACKED_VOL}
            body["block_device_mapping_v2"] = [disk]
        hints = {key: _filled(text, self.uuids) for key, text in server.hints.items()}
        if server.group:
            hints["group"] = self.group_ids[server.group]
        if None in hints.values():
            self.refused[server.name] = "the server of its hint was not booted"
            return
        try:
            uuid = self.api.post_server({"server": body, "os:scheduler_hints": hints})["id"]
        except OpenStackApiException as error:
            self.refused[server.name] = str(error)
            return
        self.rest(uuid)
        found = self.api.get_server(uuid)
        if found["status"] != "ACTIVE":
            self.refused[server.name] = str(found.get("fault", {}).get("message"))
            self.delete(uuid)
            return
        if server.ports and self.free_ports:
            self.free_ports.pop(0)
        self.uuids[server.name] = uuid

    def _has_pooled_disk(self, server: DrawnServer) -> bool:
        """Tell whether the pool gives the disk: Nova finds no place of such a server by a host."""
        return bool(self.drawn.has_pool and server.disk_gb and not server.is_volume)

    def _flavor_of(self, server: DrawnServer) -> str:
        return str(
            self._create_flavor(
                name=f"f-{server.name}",
                vcpu=server.vcpus,
                memory_mb=256,
                disk=server.disk_gb,
                ephemeral=0,
                extra_spec=dict(server.specs),
            )
        )

    def _image_of(self, server: DrawnServer) -> str | None:
        if not server.image:
            return None
        image = dict(self.glance.show(None, nova_fixtures.GlanceFixture.image1["id"]))
        image |= {"id": generate_uuid(), "name": f"i-{server.name}", "properties": server.image}
        return str(self.glance.create(None, image)["id"])

    def _have_state(self, server: DrawnServer) -> None:
        uuid = self.uuids[server.name]
        if server.state:
            (Path(CONF.instances_path) / uuid).mkdir(exist_ok=True)  # for the files of a rescue
            try:
                self.act(uuid, ACTIONS[server.state])
            except OpenStackApiException as error:
                self.refused[server.name] = f"{server.state}: {error}"
        if server.is_locked:
            self.api.post_server_action(uuid, {"lock": None})

    def _have_host(self, host: DrawnHost) -> None:
        if host.lost:
            self._set_traits(host, set(host.traits) - set(host.lost))
        if host.ratio != 1.0:
            uuid = self.compute_rp_uuids[host.name]
            for provider in self._get_all_rp_uuids_in_a_tree(uuid):
                inventories = self._get_provider_inventory(provider)
                if "VCPU" in inventories:
                    inventory = inventories["VCPU"] | {"allocation_ratio": host.ratio}
                    self._update_inventory(
                        provider,
                        {
                            "inventories": inventories | {"VCPU": inventory},
                            "resource_provider_generation": self._get_resource_provider_by_uuid(
                                provider
                            )["generation"],
                        },
                    )
        if host.state == "disabled":
            self.enable(host.name, is_on=False)
        if host.state in ("down", "evacuated"):
            self.go_down(host.name)
        if host.state == "evacuated":
            for uuid in self.servers_on(host.name):
                try:
                    self.act(uuid, {"evacuate": {}})
                except OpenStackApiException as error:
                    self.refused[uuid] = f"evacuate: {error}"

    def go_down(self, host: str) -> None:
        self.lost.add(host)
        super().go_down(host)

    def enable(self, host: str, *, is_on: bool) -> None:
        """Enable or disable the nova-compute of a host."""
        service = self.api.get_services(host=host, binary="nova-compute")[0]
        self.api.put_service(service["id"], {"status": "enabled" if is_on else "disabled"})

    def servers_on(self, host: str) -> list[str]:
        """Return the uuids of the servers of a host, in the order of Nova's API."""
        found = self.api.api_get(f"/servers/detail?all_tenants=1&host={host}").body["servers"]
        return [server["id"] for server in found]

    def act(self, uuid: str, action: dict[str, Any]) -> None:
        """Have Nova do something with a server, and wait until it is done, or has failed."""
        self.api.post_server_action(uuid, action)
        self.rest(uuid)

    def settle(self) -> None:
        """Have hosts send nova-scheduler the lists of their servers, as they do every 120 seconds.

        After a live migration the source tells nova-scheduler that it has the server, which the
        filters of groups and of hints believe until then.
        """
        admin = context.get_admin_context()
        for name, compute in self.computes.items():
            if name not in self.lost:
                compute.manager._sync_scheduler_instance_info(admin)

    def rest(self, uuid: str) -> None:
        """Wait until nothing is under way for a server."""
        deadline = time.monotonic() + 5 * PATIENCE
        while not self._is_at_rest(uuid):
            assert time.monotonic() < deadline, f"{uuid} does not come to rest"
            time.sleep(0.05)

    def _is_at_rest(self, uuid: str) -> bool:
        admin = context.get_admin_context()
        try:  # nova-api would take five times the CPU time
            server = objects.Instance.get_by_uuid(admin, uuid, expected_attrs=[])
        except exception.InstanceNotFound:  # which waits for a host, or for which there is none
            return bool(self.api.get_server(uuid)["status"] == "ERROR")
        if server.task_state or server.vm_state == "building":
            return False
        under_way = objects.MigrationList.get_in_progress_by_instance(admin, uuid)
        return all(migration.status == "finished" for migration in under_way)

    def has_left(self, uuid: str, host: str) -> bool:
        """Wait for the end of an evacuation; tell whether the server is on another host.

        Nova ends the migration of an evacuation before it notes the new host.
        """
        path = f"/os-migrations?instance_uuid={uuid}"

        def status() -> str:
            found = self.api.api_get(path).body["migrations"]
            return str(max(found, key=lambda each: each["id"])["status"]) if found else "error"

        wait_until(lambda: status() in ("done", "failed", "error", "completed", "confirmed"))
        if status() == "done":
            wait_until(lambda: self.host_of({"id": uuid}) != host)
        return self.host_of({"id": uuid}) != host

    def delete(self, uuid: str) -> None:
        """Delete a server, also a server in ERROR, and wait until Nova has no such server."""
        self._delete_server({"id": uuid, "status": "ERROR"})

    def _migrate_stub(self, domain: Any, destination: str, params: Any, flags: int) -> None:
        """Move a guest, as libvirt does: no step says in advance where it goes."""
        host = destination.split("/")[2]  # qemu+tcp://one/system
        moved = (
            self.computes[host].driver._host.get_connection().defineXML(params["destination_xml"])
        )
        is_paused = domain._state == fakelibvirt.VIR_DOMAIN_PAUSED
        moved.create()
        if is_paused:
            moved.suspend()
        domain.complete_job()
        assert flags & fakelibvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        domain.destroy()
        domain.undefine()

    def nova_conf(self) -> Path:
        """Write the nova.conf of nova-scheduler; return its path."""
        path = Path(self.useFixture(fixtures.TempDir()).path, "nova.conf")
        options = self.kind.scheduler_options
        path.write_text(
            "[filter_scheduler]\n"
            f"enabled_filters = {','.join(CONF.filter_scheduler.enabled_filters)}\n"
            + "".join(f"{key} = {value}\n" for key, value in options.items())
            + "[scheduler]\n"
            + "".join(f"{name} = true\n" for name in self.drawn.prefilters)
        )
        return path


def _filled(text: str, uuids: dict[str, str]) -> str | None:
    if text.startswith("{"):
        return uuids.get(text.strip("{}"))
    return text
