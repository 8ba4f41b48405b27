"""A nova-scheduler over the hosts of a random cloud: Nova's own code, without Nova's databases.

Placement is real. The computes, which nova-scheduler reads from its databases, are made of the
drawn hosts.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import oslo_messaging
from keystoneauth1.adapter import Adapter
from nova import context, exception, objects, rpc
from nova.objects.pci_device_pool import PciDevicePoolList
from nova.pci import request as pci_request
from nova.scheduler import host_manager, manager, request_filter
from nova.scheduler.client import report
from nova.virt import hardware
from oslo_utils import timeutils, uuidutils

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from tests.random_clouds.hosts import Cell, Device, Host, Server
from tests.random_clouds.providers import CARD, NETWORKS, port_request

VENDOR, VF, CARD_PRODUCT = "8086", "1515", "0443"
ALIAS = {"name": "card", "vendor_id": VENDOR, "product_id": CARD_PRODUCT, "resource_class": CARD}
OPTIONS = (
    ("filter_scheduler", "enabled_filters", ["NUMATopologyFilter", "PciPassthroughFilter"]),
    ("filter_scheduler", "weight_classes", ["cpu_tiers.ResourceProviderWeigher"]),
    ("filter_scheduler", "track_instance_changes", False),
    ("filter_scheduler", "query_placement_for_numa", True),
    ("scheduler", "max_placement_results", 100_000),  # all candidates of the largest cloud
    ("pci", "alias", [json.dumps(ALIAS)]),
)


@dataclass
class Round:
    """The candidates of the hosts for a server of a request.

    :param answered: the candidates before Nova's filters, by the name of the host.
    :param kept: the candidates after the filters, the best first.
    """

    answered: dict[str, list[dict[str, Any]]]
    kept: dict[str, list[dict[str, Any]]]


@dataclass
class Scheduler:
    """A nova-scheduler, and what it was seen to do.

    :param aliases: ``[filter_scheduler] pci_in_placement``.
    :param race: is called once, between the filters and the claim.
    """

    manager: manager.SchedulerManager
    aliases: bool
    rounds: list[Round] = field(default_factory=list)
    race: Callable[[Round], None] | None = None

    def schedule(self, spec: objects.RequestSpec, count: int) -> list[Any]:
        """Return the selections for several servers; none if not all of them have a host."""
        self.rounds.clear()
        uuids = [uuidutils.generate_uuid() for _ in range(count)]
        spec.num_instances = count
        admin = context.get_admin_context()
        try:
            selections = self.manager.select_destinations(
                admin,
                spec_obj=spec,
                instance_uuids=uuids,
                return_objects=True,
                return_alternates=True,
            )
        except oslo_messaging.ExpectedException as error:
            if error.exc_info[0] is not exception.NoValidHost:
                raise error.exc_info[1] from None
            return []
        for number in uuids:
            self.manager.placement_client.delete_allocation_for_instance(admin, number, force=True)
        return list(selections)


@contextmanager
def scheduler(
    adapter: Adapter,
    hosts: Sequence[Host],
    uuids: Mapping[str, str],
    *,
    aliases: bool,
    more: Mapping[str, Any] | None = None,
) -> Iterator[Scheduler]:
    """Yield a nova-scheduler over the hosts.

    :param uuids: the uuid of each provider by its name.
    :param more: further options of ``[filter_scheduler]``.
    """
    of_test = {"pci_in_placement": aliases, **(more or {})}
    of_group = [("filter_scheduler", name, value) for name, value in of_test.items()]
    with ExitStack() as cleanup:
        options.register(filter_scheduler)
        options.register(weigher)
        for group, name, value in (*OPTIONS, *of_group):
            CONF.set_override(name, value, group)
            cleanup.callback(CONF.clear_override, name, group)
        # Nova parses the aliases once; a former test may have had others, and so may the next.
        pci_request.get_alias_from_config.cache_clear()
        cleanup.callback(pci_request.get_alias_from_config.cache_clear)
        client = report.SchedulerReportClient(adapter)
        computes = {host.uuid: _compute(host, uuids) for host in hosts}

        def host_states(_self: Any, _context: Any, asked: Iterable[str], _spec: Any) -> list[Any]:
            return [_state(computes[uuid]) for uuid in asked if uuid in computes]

        manager_of_hosts = host_manager.HostManager
        for patch in (
            mock.patch.object(report, "PLACEMENTCLIENT", client),
            mock.patch.object(manager_of_hosts, "refresh_cells_caches"),
            mock.patch.object(manager_of_hosts, "_init_aggregates"),
            mock.patch.object(manager_of_hosts, "get_host_states_by_uuids", host_states),
            mock.patch.object(request_filter, "process_reqspec"),
            mock.patch.object(rpc, "get_notifier"),
            mock.patch.object(manager.compute_utils, "notify_about_scheduler_action"),
        ):
            cleanup.enter_context(patch)
        # The constructor creates the weigher, which installs the seams.
        seen = Scheduler(manager.SchedulerManager(), aliases)
        cleanup.enter_context(_watch(seen))
        yield seen


@contextmanager
def _watch(seen: Scheduler) -> Iterator[None]:
    """Store the candidates of all hosts before and after the filters."""
    sort = manager.SchedulerManager._get_sorted_hosts

    def sort_and_store(self: Any, spec: Any, states: Iterable[Any], index: int) -> Any:
        states = list(states)
        answered = {state.host: copy.deepcopy(state.allocation_candidates) for state in states}
        hosts = sort(self, spec, states, index)
        kept = {state.host: copy.deepcopy(state.allocation_candidates) for state in hosts}
        seen.rounds.append(Round(answered, kept))
        if seen.race and kept:
            race, seen.race = seen.race, None
            race(seen.rounds[-1])
        return hosts

    with mock.patch.object(manager.SchedulerManager, "_get_sorted_hosts", sort_and_store):
        yield


def request_spec(server: Server) -> objects.RequestSpec:
    """Return nova-api's request for a server."""
    flavor = objects.Flavor(
        id=1,
        flavorid="f",
        name="f",
        vcpus=sum(node.shared + node.dedicated for node in server.nodes),
        memory_mb=sum(node.memory_mb for node in server.nodes),
        root_gb=server.disk_gb,
        ephemeral_gb=0,
        swap=0,
        extra_specs=server.extra_specs(),
    )
    image = objects.ImageMeta(id=uuidutils.generate_uuid(), properties=objects.ImageMetaProps())
    devices = pci_request.get_pci_requests_from_flavor(flavor, server.policy)
    for port in server.ports:
        if port.kind == "direct":
            request = objects.InstancePCIRequest(
                count=1,
                spec=[{"physical_network": NETWORKS["direct"], "remote_managed": "False"}],
                request_id=uuidutils.generate_uuid(),
                requester_id=port.id,
            )
            if policy := port.policy or server.policy:
                request.numa_policy = policy
            devices.requests.append(request)
    admin = context.get_admin_context()
    groups = [
        objects.RequestGroup.from_port_request(admin, port.id, port_request(port))
        for port in server.ports
    ]
    spec = objects.RequestSpec.from_components(
        admin,
        uuidutils.generate_uuid(),
        image,
        flavor,
        hardware.numa_get_constraints(flavor, image),
        devices,
        {},
        None,
        None,
        project_id=uuidutils.generate_uuid(),
        user_id=uuidutils.generate_uuid(),
        port_resource_requests=groups,
    )
    spec.is_bfv = False
    return spec


def suffixes_of(spec: objects.RequestSpec, server: Server) -> list[str]:
    """Return the suffixes of the groups of the server's ports, and then of the alias."""
    ports = [port.id for port in server.ports]
    groups = [group.requester_id for group in spec.requested_resources]
    return [*ports, *(suffix for suffix in groups if suffix not in ports)]


def _state(compute: objects.ComputeNode) -> host_manager.HostState:
    state = host_manager.HostState(compute.host, compute.host, uuidutils.generate_uuid())
    state.update(compute=compute, service={}, aggregates=[], inst_dict={})
    return state


def _compute(host: Host, uuids: Mapping[str, str]) -> objects.ComputeNode:
    topology = objects.NUMATopology(cells=[_cell(cell) for cell in host.cells])
    pools = [
        *(_pool(device, VF, "type-VF", _function_tags(device)) for device in host.ports["direct"]),
        *(
            _pool(device, CARD_PRODUCT, "type-PCI", {"rp_uuid": uuids[device.provider]})
            for device in host.aliases
        ),
    ]
    memory_mb = sum(cell.memory_mb for cell in host.cells)
    return objects.ComputeNode(
        uuid=host.uuid,
        host=host.name,
        hypervisor_hostname=host.name,
        hypervisor_type="QEMU",
        hypervisor_version=9_000_000,
        host_ip="192.0.2.1",
        cpu_info="{}",
        vcpus=sum(len(cell.cpus) for cell in host.cells),
        vcpus_used=0,
        memory_mb=memory_mb,
        free_ram_mb=memory_mb,
        local_gb=host.disk_gb,
        local_gb_used=0,
        free_disk_gb=host.disk_gb,
        disk_available_least=host.disk_gb,
        cpu_allocation_ratio=host.cpu_ratio,
        ram_allocation_ratio=host.ram_ratio,
        disk_allocation_ratio=1.0,
        supported_hv_specs=[],
        stats={},
        metrics="[]",
        numa_topology=topology._to_json(),
        pci_device_pools=PciDevicePoolList(objects=[pool for pool in pools if pool.count]),
        updated_at=timeutils.utcnow(with_timezone=True),
    )


def _cell(cell: Cell) -> objects.NUMACell:
    return objects.NUMACell(
        id=cell.id,
        cpuset=set(cell.shared),
        pcpuset=set(cell.dedicated),
        memory=cell.memory_mb,
        cpu_usage=cell.vcpus,
        memory_usage=sum(size * count for size, count in cell.used.items()) // 1024,
        pinned_cpus=set(cell.pinned),
        siblings=[set(core) & (cell.shared | cell.dedicated) for core in cell.cores],
        socket=cell.socket,
        mempages=[
            objects.NUMAPagesTopology(
                size_kb=size,
                total=count,
                used=cell.used.get(size, 0),
                reserved=cell.reserved.get(size, 0),
            )
            for size, count in cell.pages.items()
        ],
    )


def _pool(device: Device, product: str, kind: str, tags: dict[str, str]) -> objects.PciDevicePool:
    return objects.PciDevicePool(
        vendor_id=VENDOR,
        product_id=product,
        numa_node=device.node,
        count=device.functions,
        tags={"dev_type": kind, "address": device.provider, **tags},
    )


def _function_tags(device: Device) -> dict[str, str]:
    interface = device.provider.split(":")[2]
    return {
        "physical_network": NETWORKS["direct"],
        "parent_ifname": interface,
        "remote_managed": "false",
    }
