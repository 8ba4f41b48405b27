"""The nova-compute services, as Nova's API has them."""

import pytest

from cpu_tiers.tools.cloud_model.service_states import ComputeService
from cpu_tiers.tools.compute_api import ComputeApiUnavailable
from cpu_tiers.tools.compute_services import read_compute_services, read_reported_amounts
from tests.unit.compute_api.catalog import Catalog

HYPERVISORS = "/os-hypervisors/detail?limit=1000"
SERVICES = "/os-services?binary=nova-compute"


def test_hypervisors_are_asked_once() -> None:
    hypervisor = {
        "id": "u1",
        "hypervisor_hostname": "node1.example.org",
        "state": "up",
        "status": "disabled",
        "service": {"host": "node1", "id": "s1", "disabled_reason": "rack 7"},
    }
    catalog = Catalog({("compute", HYPERVISORS): {"hypervisors": [hypervisor]}})
    assert read_compute_services(catalog.services()) == (
        ComputeService("node1", True, False, ("u1", "node1.example.org")),
    )
    assert (catalog.paths, catalog.microversions) == ([HYPERVISORS], ["2.88"])


def test_services_where_there_are_no_hypervisors() -> None:
    services = [
        {"id": "1", "binary": "nova-compute", "host": "a", "state": "up", "status": "enabled"},
        {"id": "2", "binary": "nova-compute", "host": "b", "state": "down", "status": "enabled"},
        {
            "id": "3",
            "binary": "nova-compute",
            "host": "c",
            "state": "up",
            "status": "enabled",
            "forced_down": True,
        },
        {"id": "4", "binary": "nova-scheduler", "host": "d", "state": "up", "status": "enabled"},
    ]
    catalog = Catalog({("compute", SERVICES): {"services": services}})
    assert read_compute_services(catalog.services()) == (
        ComputeService("a", True, True),
        ComputeService("b", False, True),
        ComputeService("c", False, True),
    )


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {("compute", HYPERVISORS): {"hypervisors": [{"id": "u1", "state": "up"}]}},
        {("compute", SERVICES): {"services": [{"binary": "nova-compute"}]}},
    ],
)
def test_no_answer(answers: dict[tuple[str, str], object]) -> None:
    with pytest.raises(ComputeApiUnavailable):
        read_compute_services(Catalog(answers).services())


@pytest.mark.parametrize(
    ("least", "disk"),
    [
        pytest.param(84, 84, id="something beside servers is on the disk"),
        pytest.param(200, 100, id="as in Nova, no more than without servers' disks"),
        pytest.param(-3, -3, id="an over-full disk"),
        pytest.param(None, 100, id="a driver that does not report it"),
    ],
)
def test_reported_amounts(least: int | None, disk: int) -> None:
    hypervisor = {
        "id": "u1",
        "free_ram_mb": -512,
        "vcpus_used": 12,
        "free_disk_gb": 100,
        "disk_available_least": least,
        "running_vms": 3,
        "hypervisor_version": 8002000,
    }
    new = {"id": "u2", "free_ram_mb": None, "free_disk_gb": None}
    catalog = Catalog({("compute", HYPERVISORS): {"hypervisors": [hypervisor, new]}})
    reported = read_reported_amounts(catalog.services())
    assert reported["u1"] == {
        "ram": -512,
        "cpu": 12,
        "disk": disk,
        "num_instances": 3,
        "hypervisor_version": 8002000,
    }
    assert set(reported["u2"].values()) == {0}  # nova-compute has not reported yet
    assert catalog.microversions == ["2.87"]
