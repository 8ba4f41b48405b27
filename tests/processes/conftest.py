"""Nova as in production: each service is a process with a separate configuration file.

MariaDB and RabbitMQ are packages of Debian, Placement answers over HTTP. Keystone is missing,
and a small stand-in answers for Glance and Neutron.
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nova import config, context, objects
    from nova.virt import hardware  # noqa: F401  # warns when it is imported, too

from tests.processes.cloud import Cloud
from tests.processes.control import control

HERE = Path(__file__).parent
SCHEDULER = {
    "filter_scheduler": {
        "weight_classes": "nova.scheduler.weights.all_weighers, cpu_tiers.ResourceProviderWeigher",
        "query_placement_for_vcpu_shares": True,
        "query_placement_for_numa": True,
        "enabled_filters": "ComputeFilter, ImagePropertiesFilter, NUMATopologyFilter",
    }
}


@pytest.fixture(scope="session")
def unscheduled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud whose nova-scheduler waits for :func:`cloud`; in the end no log has complaints."""
    with control(tmp_path_factory.mktemp("cloud"), SCHEDULER) as plane:
        cloud = Cloud(control=plane)
        read_database(plane.conf)
        yield cloud
        assert cloud.complaints() == []


@pytest.fixture(scope="session")
def cloud(unscheduled: Cloud) -> Cloud:
    """A control plane, to which tests add hosts."""
    unscheduled.control.start_again(unscheduled.control.add("nova-scheduler"))
    return unscheduled


@pytest.fixture(autouse=True)
def nothing_left(unscheduled: Cloud) -> Iterator[None]:
    """Delete the servers of a test, and check that no allocations and no pins are left.

    The destination of a move learns of the confirmation only in its next periodic run. The pins
    of a server that was deleted before are freed only in the same run.
    """
    yield
    unscheduled.delete(*unscheduled.servers())
    unscheduled.wait_until(
        lambda: not unscheduled.used() and not pinned(), "nothing is held or pinned"
    )


def pinned() -> list[int]:
    """Return the pinned CPUs of all hosts in Nova's database."""
    nodes = objects.ComputeNodeList.get_all(context.get_admin_context())
    hosts = [objects.NUMATopology.obj_from_db_obj(node.numa_topology) for node in nodes]
    return [cpu for host in hosts for cell in host.cells for cpu in cell.pinned_cpus]


def read_database(conf: Path) -> None:
    """Let Nova's objects in this process read the database of the cell v2, and send messages."""
    config.parse_args([""], default_config_files=[str(conf)])
    objects.register_all()


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Allow warnings of Nova and its libraries."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
