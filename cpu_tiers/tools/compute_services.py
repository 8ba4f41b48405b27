"""The nova-compute services of a cloud, as Nova's API says, with one request for 1,000 hosts.

Source: API reference of Nova, "Hypervisors (os-hypervisors)" and "Compute services (os-services)".
2.53 is the first microversion whose hypervisors have the uuid of their provider in Placement, 2.87
the last with amounts, and 2.88 the first without data of the CPU.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cpu_tiers.tools.cloud_model.service_states import ComputeService
from cpu_tiers.tools.compute_api import (
    PAGE,
    Document,
    NotFoundThere,
    ObjectKind,
    get,
    part,
    read_list,
)
from cpu_tiers.tools.http.services import Services

_NOVA = ("Nova's API", "compute")
_HYPERVISOR = ObjectKind(
    *_NOVA, "a hypervisor", "/os-hypervisors", "/os-hypervisors/detail", "2.88"
)
_WITH_AMOUNTS = _HYPERVISOR._replace(microversion="2.87")
_SERVICE = ObjectKind(*_NOVA, "a service", "/os-services", "/os-services", "2.53")


def read_compute_services(services: Services) -> tuple[ComputeService, ...]:
    """Return the nova-compute services of all hosts.

    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    """
    try:
        return tuple(_of_hypervisors(read_list(services, _HYPERVISOR, {"limit": PAGE})))
    except NotFoundThere:  # an API without hypervisors; services have only the names of hosts
        path = f"{_SERVICE.list_path}?binary=nova-compute"
        answer = get(services, _SERVICE, path)
        return tuple(_of_services(part(answer, _SERVICE.plural, list, _SERVICE, path), path))


def _of_hypervisors(hypervisors: Iterable[Document]) -> Iterator[ComputeService]:
    for body in hypervisors:
        nodes = (str(body["id"]), str(body.get("hypervisor_hostname")))
        service = part(body, "service", dict, _HYPERVISOR, _HYPERVISOR.list_path)
        yield _service(body, str(service.get("host")), nodes)


def _of_services(bodies: Iterable[Document], path: str) -> Iterator[ComputeService]:
    for body in bodies:
        if body.get("binary", "nova-compute") == "nova-compute":
            yield _service(body, part(body, "host", str, _SERVICE, path), ())


def _service(body: Document, host: str, nodes: tuple[str, ...]) -> ComputeService:
    return ComputeService(
        host=host,
        is_up=body.get("state") == "up" and body.get("forced_down") is not True,
        is_enabled=body.get("status") == "enabled",
        nodes=nodes,
    )


def read_reported_amounts(services: Services) -> dict[str, Mapping[str, float]]:
    """Return what Nova's weighers compare of each compute node, by the uuid of its provider.

    Of the weigher ``cpu``, the amount is that of the used vCPUs: Nova's API has no allocation
    ratio.
    """
    listed = read_list(services, _WITH_AMOUNTS, {"limit": PAGE})
    return {str(body["id"]): _amounts(body) for body in listed}


def _amounts(body: Document) -> Mapping[str, float]:
    def number(key: str) -> float:
        value: Any = body.get(key)
        return value if isinstance(value, int) else 0

    # As in Nova, the smaller amount counts; libvirt knows what is on the disk beside servers.
    least = body.get("disk_available_least")
    free_gb = number("free_disk_gb")
    return {
        "ram": number("free_ram_mb"),
        "cpu": number("vcpus_used"),
        "disk": min(free_gb, least) if isinstance(least, int) else free_gb,
        "num_instances": number("running_vms"),
        "hypervisor_version": number("hypervisor_version"),
    }
