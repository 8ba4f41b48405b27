"""The nova-compute services of a cloud, as Nova's API says, with one request for 1,000 hosts.

Source: API reference of Nova, "Hypervisors (os-hypervisors)" and "Compute services (os-services)".
2.53 is the first microversion whose hypervisors have the uuid of their provider in Placement, and
2.88 the first without data of the CPU.
"""

from collections.abc import Iterable, Iterator

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
